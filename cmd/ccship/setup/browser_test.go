//go:build unix && !darwin

package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestBrowserArguments: all users can read the arguments of a process, so the link is in a file of its user alone.
func TestBrowserArguments(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	script := "#!/bin/sh\necho \"$@\" >" + said + ".part && mv " + said + ".part " + said + "\n"
	kit.Must(t, os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	home := Home{Dir: t.TempDir()}
	const link = "http://127.0.0.1:5000/login?ticket=s3cret&a"
	kit.Must(t, openBrowser(t.Context(), home, link))
	var arguments []byte
	for limit := time.After(time.Minute); len(arguments) == 0; {
		select {
		case <-limit:
			t.Fatal("no browser was started")
		case <-time.After(10 * time.Millisecond):
			arguments, _ = os.ReadFile(said)
		}
	}
	page := strings.TrimSpace(string(arguments))
	kit.Check(t, !strings.Contains(page, "s3cret"), "the link is in the arguments: %q", page)
	text, err := os.ReadFile(page)
	kit.Check(t, err == nil && strings.Contains(string(text), "ticket=s3cret&amp;a"), "the page is %q %v", text, err)
	info, err := os.Stat(page)
	kit.Check(t, err == nil && info.Mode().Perm() == 0o600, "others may read the page: %v %v", info, err)
}

// Without a desktop nothing is started, and no link is left in a file.
func TestNoBrowser(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	home := Home{Dir: t.TempDir()}
	kit.Must(t, openBrowser(t.Context(), home, "http://127.0.0.1:5000/login?ticket=s3cret"))
	_, err := os.Stat(home.File(pageName))
	kit.Check(t, err != nil, "the link is in a file")
}
