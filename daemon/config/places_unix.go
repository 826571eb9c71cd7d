//go:build !windows

package config

import (
	"path/filepath"
)

const HomeVariable = "HOME"

// systemPlaces follows the XDG base directory specification, on macOS too.
func systemPlaces(home string, env Env) places {
	p := places{
		home:   home,
		config: filepath.Join(either(env, "XDG_CONFIG_HOME", home, ".config"), "ccship"),
		state:  filepath.Join(either(env, "XDG_STATE_HOME", home, ".local", "state"), "ccship"),
	}
	if dir := env.Get("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		p.runtime = filepath.Clean(dir)
	}
	return p
}
