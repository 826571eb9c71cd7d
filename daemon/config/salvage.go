package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/ccship/ccship/internal/sys"
)

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
