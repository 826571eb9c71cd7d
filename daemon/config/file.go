package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/ccship/ccship/internal/sys"
)

// readFile reads the settings of a configuration file. A missing file has none; with must it is an error.
func readFile(path string, must bool) (map[string]setting, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{
			Message: fmt.Sprintf("read configuration: %v", err),
			Hint:    "name a readable file with --config or CCSHIP_CONFIG",
		}
	}
	return parseFile(path, text)
}

// parseFile parses TOML as far as that does not depend on the options' kinds.
func parseFile(path string, text []byte) (map[string]setting, error) {
	tree := map[string]any{}
	if _, err := toml.Decode(string(text), &tree); err != nil {
		where := path
		var syntax toml.ParseError
		message := err.Error()
		if errors.As(err, &syntax) {
			where = fmt.Sprintf("%s:%d", path, syntax.Position.Line)
			message = syntax.Message
		}
		return nil, &Error{Message: where + ": " + message,
			Hint: "values look like key = \"text\", key = [\"a\", \"b\"] or key = true"}
	}
	settings := map[string]setting{}
	for key, value := range tree {
		where := fmt.Sprintf("%s:%d", path, lineOf(text, key))
		o, ok := LookupOption(key)
		if !ok {
			return nil, unknownOption(key, where+": ")
		}
		texts, err := textsOf(o, value)
		if err != nil {
			return nil, &Error{Message: fmt.Sprintf("%s: %v", where, err), Hint: "write " + o.Name + " = " + example(o)}
		}
		settings[key] = setting{texts, provenance{FromFile, where}}
	}
	return settings, nil
}

// textsOf converts a TOML value to the texts it would be on the command line.
func textsOf(o Option, value any) ([]string, error) {
	switch v := value.(type) {
	case []any:
		if !o.List() {
			break
		}
		texts := []string{}
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("%s takes a %s", o.Name, o.Type())
			}
			texts = append(texts, s)
		}
		return texts, nil
	case string:
		if o.List() {
			return split(o, v), nil
		}
		return []string{v}, nil
	case bool:
		if o.Kind == kindBool {
			return []string{strconv.FormatBool(v)}, nil
		}
	case int64:
		if o.Kind == kindSize || o.Kind == kindCount {
			return []string{strconv.FormatInt(v, 10)}, nil
		}
	}
	return nil, fmt.Errorf("%s takes a %s", o.Name, o.Type())
}

func example(o Option) string {
	switch {
	case o.List():
		return `["a", "b"]`
	case o.Kind == kindBool:
		return "true"
	case o.Kind == kindCount:
		return "100"
	case o.Kind == kindSize:
		return `"64MiB"`
	case o.Kind == kindChoice:
		return quote(o.Choices[0])
	default:
		return `"…"`
	}
}

// lineOf returns the number of the line that sets key, or that opens the table of that name; 1 when it cannot find the
// line.
func lineOf(text []byte, key string) int {
	q := regexp.QuoteMeta(key)
	found := regexp.MustCompile(`(?m)^[ \t]*\[*[ \t]*["']?` + q + `["']?[ \t]*[=.\]]`).FindIndex(text)
	if found == nil {
		return 1
	}
	return 1 + bytes.Count(text[:found[0]], []byte("\n"))
}

// WriteOption sets one key in a configuration file and keeps everything else, comments included. It creates a missing
// file, replaces the file in one step, and sets its mode to 0600. It writes nothing if the new file would not be a
// valid configuration; that error is a *Error.
func WriteOption(path, name string, texts []string, env Env) error {
	o, ok := LookupOption(name)
	if !ok {
		return unknownOption(name, "")
	}
	if !o.List() && len(texts) != 1 {
		return &Error{Message: name + " takes one value", Hint: "ccship config " + name + " " + example(o)}
	}
	p, err := sys.FindPlaces(env)
	if err != nil {
		return err
	}
	if _, err := understand(o, texts, p); err != nil {
		return setting{provenance: provenance{FromFlag, name}}.blame(o, err)
	}
	v := Value{Name: name, Value: texts}
	if !o.List() {
		v.Value = texts[0]
	}
	return WriteValues(path, []Value{v})
}

// replaceKey puts line where key is set now, or at the end: there are no tables that would claim it.
func replaceKey(text, key, line string) string {
	lines := strings.SplitAfter(text, "\n")
	if from, to, found := spanOf(lines, key); found {
		return strings.Join(lines[:from], "") + line + strings.Join(lines[to:], "")
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// spanOf finds the lines that set a key.
func spanOf(lines []string, key string) (from, to int, found bool) {
	sets := regexp.MustCompile(`^[ \t]*["']?` + regexp.QuoteMeta(key) + `["']?[ \t]*=`)
	for i := range lines {
		if !sets.MatchString(lines[i]) {
			continue
		}
		end := i + 1
		for ; end < len(lines); end++ { // an array may span several lines
			if _, err := toml.Decode(strings.Join(lines[i:end], ""), &map[string]any{}); err == nil {
				break
			}
		}
		return i, end, true
	}
	return 0, 0, false
}

// tomlValue writes a single value in the most readable form for its kind.
func tomlValue(o Option, text string) string {
	switch o.Kind {
	case kindBool:
		b, _ := strconv.ParseBool(text) // valid: parsed before
		return strconv.FormatBool(b)
	case kindCount:
		return text
	}
	return tomlString(text)
}

func tomlList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = tomlString(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// tomlString quotes a text. A Windows path keeps its backslashes in a literal string.
func tomlString(s string) string {
	if strings.Contains(s, `\`) && !strings.ContainsAny(s, "'\n\r") {
		return "'" + s + "'"
	}
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(map[string]string{"k": s}); err != nil {
		return quote(s)
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), "k = "), "\n")
}

// replaceFile writes a whole new configuration; it makes the folder if that is missing.
func replaceFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make configuration folder: %w", err)
	}
	return sys.WriteFile(path, text)
}

// serviceEnv returns the environment that a service manager gives a process, as far as it decides about paths: a
// service does not get the variables of a shell.
func serviceEnv(env Env) Env {
	if env == nil {
		env = os.LookupEnv
	}
	seen := map[string]bool{HomeVariable: true, "XDG_RUNTIME_DIR": runtime.GOOS == "linux", "AppData": true,
		"LocalAppData": true}
	return func(name string) (string, bool) {
		if !seen[name] {
			return "", false
		}
		return env(name)
	}
}

// Unwritten returns what a service would not know: the values in force that differ from those of the same file without
// the flags and variables of this process. env nil is the environment of the process.
func (c Config) Unwritten(env Env) ([]Value, error) {
	seen := serviceEnv(env)
	service, err := Load(nil, func(name string) (string, bool) {
		if name == "CCSHIP_CONFIG" {
			return c.Path, true // it need not exist
		}
		return seen(name)
	})
	if err != nil {
		return nil, err
	}
	var out []Value
	for _, v := range c.Values() {
		if there, err := service.Lookup(v.Name); err != nil || there.Text() != v.Text() {
			out = append(out, v)
		}
	}
	return out, nil
}

// ServiceConfig returns the path of the configuration that a service must be given; "" if it finds the file by itself.
// env nil is the environment of the process.
func (c Config) ServiceConfig(env Env) (string, error) {
	path, err := Path("", serviceEnv(env))
	if err != nil || path == c.Path {
		return "", err
	}
	return c.Path, nil
}

// WriteValues sets several keys in a configuration file, in one step, and keeps everything else in it. It creates a
// missing file; the mode is 0600 afterwards.
func WriteValues(path string, values []Value) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read configuration: %w", err)
	}
	if _, err := parseFile(path, old); err != nil {
		return err
	}
	text := string(old)
	for _, v := range values {
		if _, ok := LookupOption(v.Name); !ok {
			return unknownOption(v.Name, "")
		}
		text = replaceKey(text, v.Name, v.TOML()+"\n")
	}
	if _, err := parseFile(path, []byte(text)); err != nil {
		return err
	}
	return replaceFile(path, []byte(text))
}

// WriteServer sets server and key together: afterwards either both are set, or both are unchanged. key "" leaves the
// key file alone. values are further keys of the configuration. The key file has mode 0600, its folder 0700. The
// configuration is written first, so that a running daemon never shows the former server the new key.
func WriteServer(path, keyFile, key string, values []Value) error {
	old, err := os.ReadFile(path)
	had := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read configuration: %w", err)
	}
	if err := WriteValues(path, values); err != nil || key == "" {
		return err
	}
	err = replaceFile(keyFile, []byte(key+"\n"))
	if err == nil {
		return nil
	}
	undo := os.Remove
	if had {
		undo = func(string) error { return replaceFile(path, old) }
	}
	return errors.Join(fmt.Errorf("write API key: %w", err), undo(path))
}

// Salvage is Load for callers that only read: invalid settings count as not set. The error is the first mistake, as
// from Load. The configuration is usable nevertheless, unless its Path is empty.
func Salvage(flags map[string]string, env Env) (Config, error) {
	if env == nil {
		env = os.LookupEnv
	}
	c, mistake := Load(flags, env)
	if mistake == nil {
		return c, nil
	}
	p, err := sys.FindPlaces(env)
	if err != nil {
		return Config{}, mistake
	}
	path, _, err := p.ConfigFile(flags["config"], env)
	if err != nil {
		path = filepath.Join(p.Config, "config.toml")
	}
	c = newConfig(path, p, flags, env)
	settings := salvageFile(path)
	none := func(string) (string, bool) { return "", false }
	for _, o := range Options() {
		if c.set(o, strongest(o, flags, env, settings), p) == nil {
			continue
		}
		if c.set(o, strongest(o, nil, none, settings), p) != nil {
			_ = c.set(o, strongest(o, nil, none, nil), p) // a default is never a mistake
		}
	}
	c.fillDefaults(p, env)
	c.level.Set(c.LogLevel)
	return c, mistake
}

// salvageFile returns the valid settings of a file, and skips invalid lines.
func salvageFile(path string) map[string]setting {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	lines := strings.Split(string(text), "\n")
	tree := map[string]any{}
	for range lines {
		var syntax toml.ParseError
		clear(tree)
		_, err = toml.Decode(strings.Join(lines, "\n"), &tree)
		if !errors.As(err, &syntax) || syntax.Position.Line < 1 || syntax.Position.Line > len(lines) {
			break
		}
		lines[syntax.Position.Line-1] = ""
	}
	settings := map[string]setting{}
	for key, value := range tree {
		if o, ok := LookupOption(key); ok {
			if texts, err := textsOf(o, value); err == nil {
				settings[key] = setting{texts, provenance{FromFile, path}}
			}
		}
	}
	return settings
}
