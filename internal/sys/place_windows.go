package sys

import (
	"path/filepath"
)

// HomeVariable is the environment variable that names the home folder.
const HomeVariable = "USERPROFILE"

// system returns the roaming and the local application folders; the XDG variables win where someone has set them.
func system(home string, env PlaceEnv) Places {
	config := either(env, "AppData", home, "AppData", "Roaming")
	state := either(env, "LocalAppData", home, "AppData", "Local")
	if dir := env.Get("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		config = dir
	}
	if dir := env.Get("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		state = dir
	}
	return Places{Home: home, Config: filepath.Join(config, "ccship"), State: filepath.Join(state, "ccship")}
}
