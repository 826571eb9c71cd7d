//go:build unix

package sys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSquattedFolder: where another user has taken the folder, all processes use the next one, also when the first is
// free again; with none left the error says what is in the way.
func TestSquattedFolder(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	squat := func(path string) {
		t.Helper()
		kit.Must(t, os.Mkdir(path, 0o777))
		kit.Must(t, os.Chmod(path, 0o777))
	}
	squat(first)
	got, err := ownFolder(first, second)
	kit.Require(t, got == second && err == nil, "%q %v", got, err)
	kit.Must(t, os.Remove(first))
	kit.Gives(t, "the first is free again", second)(ownFolder(first, second))
	kit.Must(t, os.Remove(second))
	squat(first)
	squat(second)
	if _, err := ownFolder(first, second); err == nil || !strings.Contains(err.Error(), first+" is not a folder that only this user can use: remove it") {
		t.Errorf("both are taken: %v", err)
	}
}
