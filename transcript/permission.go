package transcript

import "strings"

// Permissions Claude Code asks for. What it does without asking is documented at
// https://code.claude.com/docs/en/permissions: reading and searching below the working directory, and in the mode
// acceptEdits also editing there. Rules of the user may allow or forbid more; no transcript has them.

// MayAsk reports whether Claude Code may ask its user before a tool call. mode is that of permissions, path the file or
// folder that the call is about; "" is none.
func MayAsk(mode, tool, path, cwd string) bool {
	switch mode {
	case "bypassPermissions", "dontAsk":
		return false
	}
	switch tool {
	case "TodoWrite", "BashOutput", "TaskOutput", "ToolSearch", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList",
		// These run at the API.
		"advisor", "web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution":
		return false
	case "Read", "NotebookRead", "Glob", "Grep", "LS":
		return !below(path, cwd)
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		return mode != "acceptEdits" || path == "" || !below(path, cwd)
	}
	return true
}

// below reports whether a path is in a folder. A relative one is.
func below(path, folder string) bool {
	path, folder = strings.ReplaceAll(path, `\`, "/"), strings.TrimRight(strings.ReplaceAll(folder, `\`, "/"), "/")
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return false
		}
	}
	rest, in := strings.CutPrefix(path, folder)
	absolute := strings.HasPrefix(path, "/") || strings.HasPrefix(path, "~") || len(path) > 2 && path[1] == ':'
	return !absolute || folder != "" && in && (rest == "" || rest[0] == '/')
}
