package project

import (
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestIsCredentials(t *testing.T) {
	for path, want := range map[string]bool{
		CredentialsPath("/w/p"):              true,
		"/w/.CodeTracker/Credentials.JSON":   true,
		"/w/.codetracker/config.json":        false,
		"/w/credentials.json":                false,
		"/w/.codetracker/x/credentials.json": false,
	} {
		kit.Equal(t, path, IsCredentials(filepath.FromSlash(path)), want)
	}
}
