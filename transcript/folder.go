package transcript

import (
	"path"
	"strings"
)

// FolderName returns the last element of a folder's path, of Windows or not, whatever system this is; the path itself
// of a root.
func FolderName(dir string) string {
	if name := path.Base(slashed(dir)); name != "/" && name != "." {
		return name
	}
	return dir
}

// RepositoryOf returns the folder that a working directory belongs to: itself, or for one in a worktree that Claude
// Code made the repository.
func RepositoryOf(cwd string) string {
	if i := strings.Index(slashed(cwd), "/.claude/worktrees/"); i >= 0 {
		return cwd[:i]
	}
	return cwd
}

// slashed returns a path with slashes, if it begins as paths of Windows do.
func slashed(p string) string {
	drive := len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') && ('a' <= p[0]|0x20 && p[0]|0x20 <= 'z')
	if drive || strings.HasPrefix(p, `\\`) {
		return strings.ReplaceAll(p, `\`, "/")
	}
	return p
}
