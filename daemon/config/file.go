package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
