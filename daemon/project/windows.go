package project

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
)

// A folder of Windows has many names: C:\w\app is c:/w/app in an editor, /c/w/app in Git's shell, /mnt/c/w/app in a
// Linux next to it, and \\?\C:\w\app to some programs. Usual is the first of them.

var (
	onDrive = regexp.MustCompile(`^(?:/(?:mnt/|cygdrive/)?([A-Za-z])|(?:[\\/]{2}[?.][\\/])?([A-Za-z]):)(?:[\\/]|$)`)
	onShare = regexp.MustCompile(`^[\\/]{2}(?:\?[\\/]UNC[\\/])?([^\\/?.][^\\/]*)[\\/]`)
)

// Usual returns a folder's path in the form that it has most often, whatever system this is: without a separator at
// its end and, of Windows, with its drive or server in front. What looks like a drive but is OwnFolder stays.
func Usual(dir string) string { return usual(dir, OwnFolder) }

func usual(dir string, own func(place string) bool) string {
	back := func(prefix, rest string) string {
		return prefix + strings.ReplaceAll(path.Clean("/"+strings.ReplaceAll(rest, `\`, "/")), "/", `\`)
	}
	if at := onDrive.FindStringSubmatch(dir); at != nil && (at[1] == "" || !own(path.Clean(at[0]))) {
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

// OwnFolder reports whether a path that shells have for a drive of Windows, "/c" or "/mnt/c", is a folder of this
// system itself.
func OwnFolder(place string) bool {
	if runtime.GOOS == "windows" || drives() != "" {
		return false
	}
	_, err := os.Lstat(place)
	return err == nil || !absent(err)
}

// drives returns the folder in which a Linux next to Windows has its drives; "" on other systems.
var drives = sync.OnceValue(func() string {
	kernel, err := os.ReadFile("/proc/version")
	if err != nil || !bytes.Contains(bytes.ToLower(kernel), []byte("microsoft")) {
		return ""
	}
	return "/mnt"
})

// native returns a path of Windows in the form that this system opens, with its drives in a folder. One that it opens
// as it is stays: patterns name it so, and older systems know no other.
func native(dir, drives string) string {
	switch {
	case filepath.IsAbs(dir):
	case runtime.GOOS == "windows":
		dir = Usual(dir)
	case drives != "" && onDrive.MatchString(dir):
		usual := Usual(dir)
		drive := filepath.Join(drives, strings.ToLower(usual[:1]))
		if _, err := os.Stat(drive); err == nil {
			return drive + strings.TrimSuffix(strings.ReplaceAll(usual[2:], `\`, "/"), "/")
		}
	}
	return filepath.Clean(dir)
}
