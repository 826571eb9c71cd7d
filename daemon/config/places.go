package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/daemon/project"
)

// places are the folders from which all others are derived.
type places struct {
	home    string
	config  string // holds config.toml
	state   string // cursors and outbox
	runtime string // "" where the system has none
}

// findPlaces reads the environment; env nil is that of the process.
func findPlaces(env Env) (places, error) {
	if env == nil {
		env = os.LookupEnv
	}
	home := env.Get(HomeVariable)
	if !filepath.IsAbs(home) {
		found, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(found) {
			return places{}, &Error{Message: "find home folder: " + HomeVariable + " is not set to a folder",
				Hint: "set " + HomeVariable}
		}
		home = found
	}
	return systemPlaces(filepath.Clean(home), env), nil
}

// configFile returns the configuration file's path, and whether it must exist. A flag names a file that must exist. The
// variable may name a file that a script writes later.
func (p places) configFile(flag string, env Env) (path string, must bool, err error) {
	path = flag
	if path == "" {
		path = env.Get("CCSHIP_CONFIG")
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
		return "", &Error{Message: quote(path) + " names another user's home", Hint: "write the folder in full"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &Error{Message: "find " + quote(path) + ": " + err.Error(), Hint: "write the path in full"}
	}
	return abs, nil
}

// pattern expands ~ and checks a pattern of folders.
func (p places) pattern(text string) (string, error) {
	if text == "~" || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, `~\`) && filepath.Separator == '\\' {
		text = project.Literal(p.home) + filepath.ToSlash(text[1:])
	}
	if err := project.CheckPattern(text); err != nil {
		return "", &Error{Message: quote(text) + ": " + err.Error(),
			Hint: "write a folder in full, or a pattern such as ~/clients/* or **/private"}
	}
	return text, nil
}

// either returns a folder from a variable if that is absolute (the XDG specification says to ignore others), else a
// folder below home.
func either(env Env, variable, home string, below ...string) string {
	if dir := env.Get(variable); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(append([]string{home}, below...)...)
}

// OwnFolders returns the existing folders that hold only files of ccship and its server, links resolved, together with
// their subfolders that hold secrets.
func (c *Config) OwnFolders() (dirs []string) {
	all := []string{c.StateDir}
	if up := filepath.Dir(c.StateDir); filepath.Base(up) == "up" {
		all = append(all, up) // a daemon of `ccship up` has its state beside the server's
	}
	if p, err := findPlaces(c.env); err == nil {
		all = append(all, p.config, p.state, filepath.Join(filepath.Dir(p.state), "ccship-server"),
			filepath.Join(p.home, ".local", "state", "ccship-server"))
	}
	for _, dir := range all {
		for _, below := range []string{"", "up", filepath.Join("up", "state")} {
			if real, err := filepath.EvalSymlinks(filepath.Join(dir, below)); err == nil {
				dirs = append(dirs, real)
			}
		}
	}
	return dirs
}
