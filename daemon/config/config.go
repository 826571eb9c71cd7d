// Package config holds every option of ccship: where its value comes from, what it means, and how the configuration
// file is edited. It reads the key file. It does not know the parts of the daemon that use an option.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
)

// Config is the daemon's whole configuration. Load makes one from flags, environment, file and defaults; all paths in
// it are absolute. It is a value: changing a copy does not change the original.
type Config struct {
	ServerURL            string // normalised; "" until a server is set: nothing is queued then
	APIKeyFile           string
	Roots                []string // folders of project folders; they need not exist yet
	StateDir             string
	Socket               string
	LogLevel             slog.Level
	Watch                string // "auto", "events" or "poll"
	Protocol             string // "auto" or "plain"
	TrustedProjects      []string
	ExcludeProjects      []string // patterns of folders
	ExcludeTypes         []string
	History              bool
	MaxEntriesPerRequest int
	OutboxCap            int64 // bytes
	HeadRoom             int64 // bytes; 0 is 256 MiB, on small disks 2 %
	LineCap              int64 // bytes
	CompactAbove         int64 // bytes
	MessagesKept         int
	MessageInputLimit    int // characters, as is:
	MessageOutputLimit   int
	Locale               string // "en" or "ko"
	DocumentCap          int64  // bytes
	BlobCap              int64  // bytes
	Prices               string // file; "" is the built-in list
	ViewerLinks          bool
	Redact               string   // "auto", "on" or "off"
	RedactRules          []string // files

	Path    string       // the configuration file, which need not exist
	Version string       // of the program, for status and User-Agent; set by the caller, not a key
	Log     *slog.Logger // set by the caller, not a key; nil is Logger's text on standard error
	// Hangup makes the daemon read the configuration again on each value; nil: never. Set by the caller, not a key.
	Hangup <-chan os.Signal
	// Managed means that a service manager started the daemon: then it waits while another one delivers the same roots.
	// Set by the caller, not a key.
	Managed bool

	origins map[string]provenance
	home    string
	level   *slog.LevelVar    // of every TextLog made from this and later readings; nil: LogLevel, fixed
	flags   map[string]string // those passed to Load
	env     Env               // passed to Load; nil: made without Load
	hadFile bool              // Path existed when it was read
	stamp   string            // of the file, taken before it was read
}

// Error is a mistake in flags, environment or configuration file. A retry without a change cannot help; commands end
// with exit code 2.
type Error = sys.PlaceError

// Origin says which kind of source a value came from.
type Origin string

const (
	FromDefault     Origin = "default"
	FromFile        Origin = "file"
	FromEnvironment Origin = "environment"
	FromFlag        Origin = "flag"
)

// provenance is where the value in force was written.
type provenance struct {
	origin Origin
	source string // "/path/config.toml:3", "CCSHIP_ROOTS", "--roots"; "" for a default
}

// setting is an option's value as it was written, before it is parsed.
type setting struct {
	texts []string
	provenance
}

// Value is the value in force of one option.
type Value struct {
	Name   string `json:"name"`
	Value  any    `json:"value"` // string, bool, number or list of strings
	Origin Origin `json:"origin"`
	Source string `json:"source,omitempty"`
}

// Env looks up an environment variable.
type Env = sys.PlaceEnv

// Load reads the configuration. Flags (option name → text; "config" names the file) override CCSHIP_* variables, these
// override the file, and the file overrides the defaults. env nil is the environment of the process. A mistake is a
// *Error. Load does not check whether the key file and the server are usable: see Config.APIKey.
func Load(flags map[string]string, env Env) (Config, error) {
	if env == nil {
		env = os.LookupEnv
	}
	p, err := sys.FindPlaces(env)
	if err != nil {
		return Config{}, err
	}
	path, must, err := p.ConfigFile(flags["config"], env)
	if err != nil {
		return Config{}, err
	}
	c := newConfig(path, p, flags, env)
	settings, err := readFile(c.Path, must)
	if err != nil {
		return Config{}, err
	}
	for _, o := range Options() {
		if err := c.set(o, strongest(o, flags, env, settings), p); err != nil {
			return Config{}, err
		}
	}
	c.fillDefaults(p, env)
	c.level.Set(c.LogLevel)
	return c, nil
}

// newConfig returns a configuration without any values.
func newConfig(path string, p sys.Places, flags map[string]string, env Env) Config {
	c := Config{
		Path: path, origins: map[string]provenance{}, home: p.Home, level: &slog.LevelVar{},
		flags: maps.Clone(flags), env: env, stamp: Stamp(path),
	}
	c.hadFile = c.stamp != ""
	return c
}

// With returns the same configuration with further flags, which override all other sources.
func (c Config) With(flags map[string]string) (Config, error) {
	all := maps.Clone(c.flags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, flags)
	next, err := Load(all, c.env)
	next.Version, next.Log = c.Version, c.Log
	return next, err
}

// Path returns the configuration file that Load would read, whether it exists or not: the named one, else that of
// CCSHIP_CONFIG, else the default. env nil is the environment of the process.
func Path(named string, env Env) (string, error) {
	if env == nil {
		env = os.LookupEnv
	}
	p, err := sys.FindPlaces(env)
	if err != nil {
		return "", err
	}
	path, _, err := p.ConfigFile(named, env)
	return path, err
}

// strongest returns the source of an option that takes precedence. An empty environment variable counts as not set.
func strongest(o Option, flags map[string]string, env Env, file map[string]setting) setting {
	if text, ok := flags[o.Name]; ok {
		return setting{split(o, text), provenance{FromFlag, "--" + o.Flag()}}
	}
	if text := env.Get(o.Env()); text != "" {
		return setting{split(o, text), provenance{FromEnvironment, o.Env()}}
	}
	if s, ok := file[o.Name]; ok {
		return s
	}
	s := setting{provenance: provenance{origin: FromDefault}}
	if o.Default != "" && o.Kind != kindPath && !o.List() {
		s.texts = []string{o.Default}
	}
	return s
}

// fillDefaults sets the paths whose defaults depend on the system or on other options.
func (c *Config) fillDefaults(p sys.Places, env Env) {
	if c.StateDir == "" {
		c.StateDir = p.State
	}
	if c.Locale == "" {
		c.Locale = localeOf(env)
	}
	if c.APIKeyFile == "" {
		c.APIKeyFile = filepath.Join(filepath.Dir(c.Path), "api_key")
	}
	if c.Socket == "" {
		c.Socket = p.Socket(c.StateDir)
	}
	if len(c.Roots) > 0 {
		for i, root := range c.Roots {
			c.Roots[i] = projectsFolder(root)
		}
		return
	}
	if dir := env.Get("CLAUDE_CONFIG_DIR"); filepath.IsAbs(dir) {
		c.Roots = append(c.Roots, filepath.Join(dir, "projects"))
	}
	home := filepath.Join(p.Home, ".claude", "projects")
	if len(c.Roots) == 0 || c.Roots[0] != home {
		c.Roots = append(c.Roots, home)
	}
}

// localeOf returns the language of the environment; a service's environment has none.
func localeOf(env Env) string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if language := env.Get(name); language != "" {
			if strings.HasPrefix(language, "ko") {
				return "ko"
			}
			break
		}
	}
	return "en"
}

// Elsewhere lists the folders with conversations that are below none of some roots. It reads names and sizes only. A
// configuration that Load did not make knows none.
func (c Config) Elsewhere(roots []string) []ClaudeHome {
	if c.env == nil {
		return nil
	}
	return elsewhere(c.home, c.env.Get, roots)
}

// projectsFolder returns the folder that a root means: people name either Claude's own folder or the projects folder in
// it.
func projectsFolder(root string) string {
	below := filepath.Join(root, "projects")
	if filepath.Base(root) != "projects" {
		if info, err := os.Stat(below); err == nil && info.IsDir() {
			return below
		}
	}
	return root
}

// OriginOf returns which kind of source the value of an option came from.
func (c Config) OriginOf(name string) Origin {
	if p, ok := c.origins[name]; ok {
		return p.origin
	}
	return FromDefault
}

// Values returns every option with its value in force, in the order of Options.
func (c Config) Values() []Value {
	var values []Value
	for _, o := range Options() {
		from := c.origins[o.Name]
		if from.origin == "" {
			from.origin = FromDefault
		}
		values = append(values, Value{Name: o.Name, Value: c.value(o.Name), Origin: from.origin, Source: from.source})
	}
	return values
}

// Lookup returns one option with its value in force. An unknown name is a *Error that names the nearest known one.
func (c Config) Lookup(name string) (Value, error) {
	for _, v := range c.Values() {
		if v.Name == name {
			return v, nil
		}
	}
	return Value{}, unknownOption(name, "")
}

// Text returns the bare value; a list has one item per line.
func (v Value) Text() string {
	switch x := v.Value.(type) {
	case []string:
		return strings.Join(x, "\n")
	case int64:
		if o, ok := LookupOption(v.Name); ok && o.Kind == kindSize {
			return amount.ExactSize(x)
		}
	}
	return fmt.Sprint(v.Value)
}

// TOML returns the line that sets the value in a configuration file.
func (v Value) TOML() string {
	o, _ := LookupOption(v.Name)
	if list, ok := v.Value.([]string); ok {
		return v.Name + " = " + tomlList(list)
	}
	return v.Name + " = " + tomlValue(o, v.Text())
}

// Logger returns Log, or a logger that writes text to standard error from LogLevel on.
func (c Config) Logger() *slog.Logger {
	if c.Log != nil {
		return c.Log
	}
	return c.TextLog(os.Stderr)
}

// TextLog returns a logger that writes text to w from LogLevel on. It follows a level that a running daemon reads
// later. For the daemon to use it, set Log.
func (c Config) TextLog(w io.Writer) *slog.Logger {
	var level slog.Leveler = c.LogLevel
	if c.level != nil {
		level = c.level
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// Reread reads the sources of c again. A missing file is an error and does not mean the defaults: editors remove files
// for a moment, and exclusions must not end then. An error is an *Error.
func (c Config) Reread() (Config, error) {
	if c.env == nil {
		return Config{}, &Error{Message: "this daemon's configuration cannot be read again", Hint: "restart it"}
	}
	if _, err := os.Stat(c.Path); errors.Is(err, fs.ErrNotExist) && c.hadFile {
		return Config{}, &Error{Message: c.Path + " is gone", Hint: "put it back; until then the last settings stay in force"}
	}
	next, err := c.With(nil)
	if err != nil {
		return Config{}, err
	}
	next.level, next.hadFile = c.level, next.hadFile || c.hadFile
	return next, nil
}

// Changes names the options that differ in next. restart lists those that a running daemon cannot change; next gets
// their values in force.
func (c *Config) Changes(next *Config) (changed, restart []string) {
	for _, o := range Options() {
		if reflect.DeepEqual(c.value(o.Name), next.value(o.Name)) {
			continue
		}
		if o.Live {
			changed = append(changed, o.Name)
			continue
		}
		restart = append(restart, o.Name)
		reflect.ValueOf(next.field(o.Name)).Elem().Set(reflect.ValueOf(c.field(o.Name)).Elem())
	}
	return changed, restart
}

// ApplyLogLevel sets LogLevel as the level of every TextLog that was made from c or from an earlier reading of it.
func (c *Config) ApplyLogLevel() {
	if c.level != nil {
		c.level.Set(c.LogLevel)
	}
}

// Stamp returns the Stamp of the configuration file, taken before it was read.
func (c *Config) Stamp() string { return c.stamp }

// Home returns the user's home folder; "" when c was made without Load.
func (c *Config) Home() string { return c.home }

// Stamp changes whenever the file does; it is "" when there is no file.
func Stamp(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(st.ModTime().UnixNano(), " ", st.Size())
}
