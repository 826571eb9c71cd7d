package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

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
