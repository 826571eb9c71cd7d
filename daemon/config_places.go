package daemon

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/daemon/project"
)

// places are the folders everything else is found from.
type places struct {
	home    string
	config  string // holds config.toml
	state   string // cursors and outbox
	runtime string // "" where the system has none
}

// findPlaces asks the environment; env nil is that of the process.
func findPlaces(env Env) (places, error) {
	if env == nil {
		env = os.LookupEnv
	}
	home := env.get(homeVariable)
	if !filepath.IsAbs(home) {
		found, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(found) {
			return places{}, &ConfigError{Message: "find home folder: " + homeVariable + " is not set to a folder", Hint: "set " + homeVariable}
		}
		home = found
	}
	return systemPlaces(filepath.Clean(home), env), nil
}

// configFile is the configuration file's path, and whether it has to exist: a flag names a file that someone sees
// before them; the variable says where the file would be, for scripts that write it later.
func (p places) configFile(flag string, env Env) (path string, must bool, err error) {
	path = flag
	if path == "" {
		path = env.get("CCSHIP_CONFIG")
	}
	if path == "" {
		return filepath.Join(p.config, "config.toml"), false, nil
	}
	path, err = p.absolute(path)
	return path, flag != "", err
}

// absolute expands ~ and makes a path absolute and clean.
func (p places) absolute(path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`) && filepath.Separator == '\\' {
		path = filepath.Join(p.home, path[1:])
	} else if strings.HasPrefix(path, "~") {
		return "", &ConfigError{Message: quote(path) + " names another user's home", Hint: "write the folder in full"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &ConfigError{Message: "find " + quote(path) + ": " + err.Error(), Hint: "write the path in full"}
	}
	return abs, nil
}

// pattern expands ~ and checks a pattern of folders.
func (p places) pattern(text string) (string, error) {
	if text == "~" || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, `~\`) && filepath.Separator == '\\' {
		text = project.Literal(p.home) + filepath.ToSlash(text[1:])
	}
	if err := project.CheckPattern(text); err != nil {
		return "", &ConfigError{Message: quote(text) + ": " + err.Error(), Hint: "write a folder in full, or a pattern such as ~/clients/* or **/private"}
	}
	return text, nil
}

// either is a folder from a variable when that is absolute (others are to be ignored by the XDG specification), else
// a folder below home.
func either(env Env, variable, home string, below ...string) string {
	if dir := env.get(variable); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(append([]string{home}, below...)...)
}
