package packaging

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed all:claude-plugin
var plugin embed.FS

// Plugin returns the Claude Code plugin: a folder that is a marketplace as well, with the plugin at its top.
func Plugin() fs.FS {
	files, err := fs.Sub(plugin, "claude-plugin")
	if err != nil {
		panic(fmt.Sprintf("packaging: %v", err)) // the name above is no path
	}
	return files
}
