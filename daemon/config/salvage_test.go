package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSalvage: what is next to a mistake is in force, and the mistake is named with its place.
func TestSalvage(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	for name, test := range map[string]struct {
		text    string
		flags   map[string]string
		mistake string
	}{
		"none":              {text: "socket = \"/run/s\"\n"},
		"unknown key":       {text: "socket = \"/run/s\"\nsever_url = \"x\"\n", mistake: path + ":2: unknown key"},
		"bad value":         {text: "watch = \"now and then\"\nsocket = \"/run/s\"\n", mistake: path + ":1"},
		"other kind":        {text: "history = 7\nsocket = \"/run/s\"\n", mistake: path + ":1"},
		"no TOML":           {text: "server_url = http://x\nsocket = \"/run/s\"\n", mistake: path + ":1"},
		"no TOML, twice":    {text: "a b c\nsocket = \"/run/s\"\n= 3\n", mistake: path + ":1"},
		"a flag":            {text: "socket = \"/run/s\"\n", flags: map[string]string{"log_level": "loud"}, mistake: "--log-level"},
		"a flag for a path": {text: "socket = \"/run/s\"\n", flags: map[string]string{"socket": "~other/s"}, mistake: "home"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Must(t, os.WriteFile(path, []byte(test.text), 0o600))
			flags := map[string]string{"config": path}
			for k, v := range test.flags {
				flags[k] = v
			}
			c, err := Salvage(flags, kit.Only(HomeVariable, home))
			kit.Check(t, filepath.ToSlash(c.Socket) == "/run/s" && c.Path == path && c.Watch == "auto" && c.OutboxCap != 0,
				"%+v", c)
			kit.Check(t, (err == nil) == (test.mistake == "") && (err == nil || strings.Contains(err.Error(), test.mistake)),
				"error %v, want %q", err, test.mistake)
		})
	}
}

// TestSalvageNothing: with a file that is not there, the defaults are in force.
func TestSalvageNothing(t *testing.T) {
	home := t.TempDir()
	c, err := Salvage(map[string]string{"config": filepath.Join(home, "gone.toml")},
		kit.Only(HomeVariable, home))
	kit.Check(t, err != nil && c.Socket != "" && c.StateDir != "", "%+v, %v", c, err)
}
