package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/ccship/ccship/daemon/control"
)

// build is what is known of a program.
type build struct {
	SchemaVersion int    `json:"schema_version"`
	Version       string `json:"version"`
	Commit        string `json:"commit,omitempty"`
	Go            string `json:"go"`
	OS            string `json:"os"`
	Arch          string `json:"arch"`
}

// text returns what --version prints.
func (b build) text() string {
	text := fmt.Sprintf("ccship %s (%s, %s/%s", b.Version, b.Go, b.OS, b.Arch)
	if b.Commit != "" {
		text += ", " + b.Commit
	}
	return text + ")\n"
}

// thisBuild returns what is known of the running program.
func thisBuild() build {
	return build{
		SchemaVersion: control.SchemaVersion, Version: version, Commit: commit(),
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
}

// commit returns the revision the binary was built from, when the toolchain knew it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return ""
}
