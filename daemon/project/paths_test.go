package project

import (
	"path/filepath"
	"testing"
)

func TestIsCredentials(t *testing.T) {
	for path, want := range map[string]bool{
		CredentialsPath("/w/p"):              true,
		"/w/.CodeTracker/Credentials.JSON":   true,
		"/w/.codetracker/config.json":        false,
		"/w/credentials.json":                false,
		"/w/.codetracker/x/credentials.json": false,
	} {
		if got := IsCredentials(filepath.FromSlash(path)); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
