package project

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// A folder of Windows has many names: C:\w\app is c:/w/app in an editor, /c/w/app in Git's shell, /mnt/c/w/app in a
// Linux next to it, and \\?\C:\w\app to some programs. Usual is the first of them.

var (
	onDrive = regexp.MustCompile(`^(?:/(?:mnt/|cygdrive/)?([A-Za-z])|(?:[\\/]{2}[?.][\\/])?([A-Za-z]):)(?:[\\/]|$)`)
	onShare = regexp.MustCompile(`^[\\/]{2}(?:\?[\\/]UNC[\\/])?([^\\/?.][^\\/]*)[\\/]`)
)

// Usual returns a folder's path in the form that it has most often, whatever system this is: without a separator at
// its end and, of Windows, with its drive or server in front.
func Usual(dir string) string {
	back := func(prefix, rest string) string {
		return prefix + strings.ReplaceAll(path.Clean("/"+strings.ReplaceAll(rest, `\`, "/")), "/", `\`)
	}
	if at := onDrive.FindStringSubmatch(dir); at != nil {
		return back(strings.ToUpper(at[1]+at[2])+":", dir[len(at[0]):])
	}
	if at := onShare.FindStringSubmatch(dir); at != nil {
		server := strings.ToLower(at[1])
		if server == "wsl$" { // as it was called once
			server = "wsl.localhost"
		}
		return back(`\\`+server, dir[len(at[0]):])
	}
	if strings.HasPrefix(dir, "/") {
		return path.Clean(dir)
	}
	return dir
}

// native returns a path of Windows in the form that this system opens.
func native(dir string) string {
	usual := Usual(dir)
	switch {
	case runtime.GOOS == "windows":
		return filepath.Clean(usual)
	case onDrive.MatchString(usual) && !filepath.IsAbs(dir):
		drive := "/mnt/" + strings.ToLower(usual[:1])
		if _, err := os.Stat(drive); err == nil {
			return drive + strings.ReplaceAll(usual[2:], `\`, "/")
		}
	}
	return filepath.Clean(dir)
}
