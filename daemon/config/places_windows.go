package config

import (
	"path/filepath"
)

const HomeVariable = "USERPROFILE"

// systemPlaces are the roaming and the local application folders; the XDG variables win where someone has set them.
func systemPlaces(home string, env Env) places {
	config := either(env, "AppData", home, "AppData", "Roaming")
	state := either(env, "LocalAppData", home, "AppData", "Local")
	if dir := env.Get("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		config = dir
	}
	if dir := env.Get("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		state = dir
	}
	return places{home: home, config: filepath.Join(config, "ccship"), state: filepath.Join(state, "ccship")}
}
