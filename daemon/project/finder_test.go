package project

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

const optOut = `{"conversation_tracking":{"enabled":false}}`

func TestFindUpwards(t *testing.T) {
	root := t.TempDir()
	write(t, root, ".codetracker/config.json", `{"server_url":"http://root:1"}`)
	write(t, root, "near/.codetracker/credentials.json", `{"api_key":"near"}`)
	write(t, root, "near/sub/.codetracker/cache/last_snapshot.json", `{}`)
	write(t, root, "off/.codetracker/config.json", optOut)
	write(t, root, "off/clone/.codetracker/config.json", `{"conversation_tracking":{"enabled":true}}`)
	write(t, root, "broken/.codetracker/config.json", `{`)
	write(t, root, "file", "")
	tests := []struct {
		cwd, dir string
		enabled  bool
		server   string
	}{
		{"", "", true, "http://root:1"},
		{"a/b/c", "", true, "http://root:1"}, // need not exist
		{"near", "near", true, DefaultServerURL},
		{"near/sub/x", "near", true, DefaultServerURL}, // a folder with only the cache says nothing
		{"off/x", "off", false, ""},
		{"off/clone/x", "off", false, ""}, // a clone cannot undo it
		{"file/x", "", true, "http://root:1"},
		{"a/../near/./", "near", true, DefaultServerURL},
	}
	for _, tt := range tests {
		p := find(t, root+"/"+tt.cwd)
		kit.Check(t, p.Dir == filepath.Join(root, tt.dir) && p.Enabled == tt.enabled && p.ServerURL == tt.server,
			"Find(%s) = %+v, want dir %s, enabled %t, server %q", tt.cwd, p, tt.dir, tt.enabled, tt.server)
	}
	p, err := NewFinder().Find(filepath.Join(root, "broken", "x", ".codetracker"))
	kit.Check(t, err != nil && !p.Enabled, "below a broken one: %+v, %v", p, err)
}

func TestFindElsewhere(t *testing.T) {
	for _, cwd := range []string{"", ".", "a/b", "/no/such/dir", "/nul\x00byte", "/" + string(make([]byte, 5000))} {
		p, err := NewFinder().Find(cwd)
		kit.Check(t, err == nil && p == (Policy{Enabled: true, MaxEntries: 100, Gone: filepath.IsAbs(cwd)}),
			"Find(%.20q) = %+v, %v", cwd, p, err)
	}
}

func TestFindLinks(t *testing.T) {
	root := t.TempDir()
	write(t, root, "real/.codetracker/config.json", optOut)
	link(t, filepath.Join(root, "loop"), filepath.Join(root, "loop"))
	link(t, filepath.Join(root, "real"), filepath.Join(root, "linked"))
	link(t, filepath.Join(root, "self", ".codetracker"), filepath.Join(root, "self", ".codetracker"))
	p := find(t, filepath.Join(root, "loop", "x"))
	kit.Check(t, p.Enabled, "through a loop: %+v", p)
	p = find(t, filepath.Join(root, "linked", "x"))
	kit.Check(t, !p.Enabled, "through a link: %+v", p)
	p = find(t, filepath.Join(root, "self"))
	kit.Check(t, p.Enabled, "folder that links to itself: %+v", p)
}

func link(t *testing.T, target, path string) {
	t.Helper()
	kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	kit.Must(t, os.Symlink(target, path))
}

// An answer is kept for Recheck, and no longer.
func TestFindCache(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := NewFinder()
		enabled := func() bool {
			p := kit.Try(f.Find(dir)).Must(t)
			return p.Enabled
		}
		kit.Require(t, enabled(), "not enabled without files")
		path := filepath.Join(dir, ".codetracker", "config.json")
		kit.WriteFile(t, path, optOut)
		<-time.After(DefaultRecheck - time.Millisecond)
		kit.Check(t, enabled(), "read again too early")
		<-time.After(time.Millisecond)
		kit.Check(t, !enabled(), "opt-out not seen")
		kit.Must(t, os.Remove(path))
		<-time.After(DefaultRecheck)
		kit.Check(t, enabled(), "end of the opt-out not seen")
	})
}

func TestFindBounded(t *testing.T) {
	f := NewFinder()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := range maxCached {
				if p, err := f.Find(filepath.Join(dir, fmt.Sprint(w, i))); err != nil || !p.Enabled {
					t.Errorf("Find = %+v, %v", p, err)
					return
				}
			}
		})
	}
	wg.Wait()
	n := len(f.cache)
	kit.Check(t, n <= maxCached && n != 0, "%d remembered, want at most %d", n, maxCached)
}

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

func TestUsual(t *testing.T) {
	for dir, want := range map[string]string{
		`C:\w\app`: `C:\w\app`, `c:\w\app\`: `C:\w\app`, `c:/w/app`: `C:\w\app`, `/c/w/app/`: `C:\w\app`, `/mnt/c/w/app`: `C:\w\app`,
		`/cygdrive/c/w/app`: `C:\w\app`, `\\?\c:\w\app`: `C:\w\app`, `C:\w\.\x\..\app`: `C:\w\app`, `C:/w//app`: `C:\w\app`,
		`c:`: `C:\`, `/mnt/c`: `C:\`, `d:\`: `D:\`, `C:\W\App`: `C:\W\App`,
		`\\Nas\share\app\`: `\\nas\share\app`, `//nas/share/app`: `\\nas\share\app`, `\\?\UNC\nas\share\app`: `\\nas\share\app`,
		`\\wsl$\Ubuntu\home\kim\app`: `\\wsl.localhost\Ubuntu\home\kim\app`,
		`/home/kim/app/`:             `/home/kim/app`, `/home/kim/a\b`: `/home/kim/a\b`, `/cd/app`: `/cd/app`, `/mnt/data/app`: `/mnt/data/app`,
		"/": "/", "": "", "app": "app",
	} {
		none := func(string) bool { return false }
		kit.Equal(t, dir, usual(dir, none), want)
		kit.Equal(t, "again "+dir, usual(want, none), want)
	}
	own := func(place string) bool { return place == "/c" || place == "/mnt/d" }
	for dir, want := range map[string]string{
		`/c`: `/c`, `/c/w/app/`: `/c/w/app`, `/mnt/d/app`: `/mnt/d/app`, `/mnt/c/w/app`: `C:\w\app`, `/d/app`: `D:\app`,
		`c:\w\app`: `C:\w\app`, `//?/c:/w/app`: `C:\w\app`,
	} {
		kit.Equal(t, "beside folders of this system: "+dir, usual(dir, own), want)
	}
}

// TestDrives: next to Windows, what is excluded on a drive is so by each name of the drive, and elsewhere nothing of
// this system decides about a folder of Windows.
func TestDrives(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("drives have their own names")
	}
	f := NewFinder()
	f.drives = t.TempDir()
	kit.WriteFile(t, filepath.Join(f.drives, "c/w/ours", IgnoreName), "")
	f.Exclude([]string{filepath.Join(f.drives, "c/w/secret")})
	for _, drives := range []string{f.drives, ""} {
		f.drives = drives
		for dir, excluded := range map[string]bool{
			`C:\w\secret`: true, `c:/w/secret/`: true, `\\?\C:\w\secret\sub`: true, `C:\w\ours`: true, `C:\w\secrets`: false, `C:\`: false,
			`Z:\w\secret`: false,
		} {
			p := kit.Try(f.Find(dir)).Must(t)
			kit.Equal(t, fmt.Sprintf("%s with drives in %q is left out", dir, drives), !p.Enabled, excluded && drives != "")
		}
	}
}
