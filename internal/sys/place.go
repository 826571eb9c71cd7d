package sys

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Places are the folders from which all others are derived.
type Places struct {
	Home    string
	Config  string // holds config.toml
	State   string // cursors and outbox
	Runtime string // "" where the system has none
}

// PlaceEnv looks up an environment variable.
type PlaceEnv func(name string) (value string, ok bool)

// Get returns an environment variable's value; "" when it is not set.
func (e PlaceEnv) Get(name string) string {
	v, _ := e(name)
	return v
}

// PlaceError is a mistake in flags, environment or configuration file. A retry without a change cannot help.
type PlaceError struct {
	Message string // one line
	Hint    string // what to type next; may be empty
	Cause   error  // distinguishes a missing file from a bad one; may be nil
}

func (e *PlaceError) Error() string { return e.Message }

func (e *PlaceError) Unwrap() error { return e.Cause }

// Advice returns Hint, for callers that only know that an error may have one.
func (e *PlaceError) Advice() string { return e.Hint }

// FindPlaces reads the environment; env nil is that of the process. An error is an *Error.
func FindPlaces(env PlaceEnv) (Places, error) {
	if env == nil {
		env = os.LookupEnv
	}
	home := env.Get(HomeVariable)
	if !filepath.IsAbs(home) {
		found, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(found) {
			return Places{}, &PlaceError{Message: "find home folder: " + HomeVariable + " is not set to a folder",
				Hint: "set " + HomeVariable}
		}
		home = found
	}
	return system(filepath.Clean(home), env), nil
}

// ConfigFile returns the configuration file's path, and whether it must exist. A flag names a file that must exist. The
// variable may name a file that a script writes later.
func (p Places) ConfigFile(flag string, env PlaceEnv) (path string, must bool, err error) {
	path = flag
	if path == "" {
		path = env.Get("CCSHIP_CONFIG")
	}
	if path == "" {
		return filepath.Join(p.Config, "config.toml"), false, nil
	}
	path, err = p.Absolute(path)
	return path, flag != "", err
}

// Absolute expands ~ and makes a path absolute and clean. An error is an *Error.
func (p Places) Absolute(path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`) && filepath.Separator == '\\' {
		path = filepath.Join(p.Home, path[1:])
	} else if strings.HasPrefix(path, "~") {
		return "", &PlaceError{Message: strconv.Quote(path) + " names another user's home", Hint: "write the folder in full"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &PlaceError{Message: "find " + strconv.Quote(path) + ": " + err.Error(), Hint: "write the path in full"}
	}
	return abs, nil
}

// either returns a folder from a variable if that is absolute (the XDG specification says to ignore others), else a
// folder below home.
func either(env PlaceEnv, variable, home string, below ...string) string {
	if dir := env.Get(variable); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(append([]string{home}, below...)...)
}
