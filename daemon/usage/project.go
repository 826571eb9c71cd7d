package usage

import "strings"

// worktrees is where Claude Code puts a repository's worktrees, below it.
const worktrees = "/.claude/worktrees/"

// repository is the folder that a working directory belongs to: itself, or for one in a worktree the repository. The
// directory may be of another system.
func repository(cwd string) string {
	if i := strings.Index(slashed(cwd), worktrees); i >= 0 {
		return cwd[:i]
	}
	return cwd
}

// slashed is a path with slashes; on Windows, a transcript's folders have backslashes.
func slashed(path string) string {
	if len(path) > 2 && path[1] == ':' || strings.HasPrefix(path, `\\`) {
		return strings.ReplaceAll(path, `\`, "/")
	}
	return path
}

// projectName is the last part of a working directory, or without one the name of the transcripts' folder.
func projectName(cwd, folder string) string {
	path := strings.TrimRight(slashed(cwd), "/")
	if name := path[strings.LastIndexByte(path, '/')+1:]; name != "" {
		return name
	}
	return folder
}
