//go:build !windows

package sys

import (
	"path/filepath"
)

// HomeVariable is the environment variable that names the home folder.
const HomeVariable = "HOME"

// system follows the XDG base directory specification, on macOS too.
func system(home string, env PlaceEnv) Places {
	p := Places{
		Home:   home,
		Config: filepath.Join(either(env, "XDG_CONFIG_HOME", home, ".config"), "ccship"),
		State:  filepath.Join(either(env, "XDG_STATE_HOME", home, ".local", "state"), "ccship"),
	}
	if dir := env.Get("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		p.Runtime = filepath.Clean(dir)
	}
	return p
}
