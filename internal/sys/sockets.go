package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// Socket returns where a daemon listens that is configured with nothing else.
func (p Places) Socket(stateDir string) string {
	if p.Runtime != "" {
		return filepath.Join(p.Runtime, "ccship", "ccship.sock")
	}
	return filepath.Join(stateDir, "ccship.sock")
}

// UpDir returns where `ccship up` keeps its own things.
func UpDir(stateDir string) string { return filepath.Join(stateDir, "up") }

// Unnamed returns the addresses where a daemon may listen when nobody named one. A service and a shell can disagree
// about XDG_RUNTIME_DIR (cron and su do not set it), so the state folder is tried too; then the daemon of `ccship up`.
func Unnamed(socket, stateDir string) []string {
	paths := []string{socket}
	if fallback := filepath.Join(stateDir, "ccship.sock"); fallback != socket {
		paths = append(paths, fallback)
	}
	return append(paths, filepath.Join(UpDir(stateDir), "ccship.sock"))
}

// Sockets returns the addresses where a daemon may listen, by the environment and the configuration file. It reads
// nothing else of these, and does not find mistakes in the rest. A socket that was named is the only one. env nil is
// the environment of the process.
func Sockets(env PlaceEnv) ([]string, error) {
	if env == nil {
		env = os.LookupEnv
	}
	p, err := FindPlaces(env)
	if err != nil {
		return nil, err
	}
	file, _, err := p.ConfigFile("", env)
	if err != nil {
		return nil, err
	}
	written, err := readFile(file)
	if err != nil {
		return nil, err
	}
	stateDir, _, err := p.option(env, written, "state_dir")
	if err != nil {
		return nil, err
	}
	if stateDir == "" {
		stateDir = p.State
	}
	socket, named, err := p.option(env, written, "socket")
	if err != nil {
		return nil, err
	}
	if socket == "" {
		socket = p.Socket(stateDir)
	}
	if named {
		return []string{socket}, nil
	}
	return Unnamed(socket, stateDir), nil
}

// option returns the path that the environment or the file gives an option, and whether either names one. An empty
// variable counts as not set.
func (p Places) option(env PlaceEnv, file map[string]any, name string) (path string, named bool, err error) {
	text := env.Get("CCSHIP_" + strings.ToUpper(name))
	if text != "" {
		named, text = true, strings.TrimSpace(text)
	} else if value, ok := file[name]; ok {
		if text, named = value.(string); !named {
			return "", false, &PlaceError{Message: name + " takes a path", Hint: "write " + name + ` = "…"`}
		}
	}
	if text != "" {
		path, err = p.Absolute(text)
	}
	return path, named, err
}

// readFile reads a configuration file; a missing one says nothing.
func readFile(path string) (map[string]any, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	file := map[string]any{}
	if _, err := toml.Decode(string(text), &file); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return file, nil
}
