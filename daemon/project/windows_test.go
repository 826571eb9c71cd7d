package project

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
