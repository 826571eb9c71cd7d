package thread

import (
	"strings"

	"github.com/ccship/ccship/server"
)

// Resume returns what goes on with a session on its own machine; "" when that can't be done.
func Resume(x server.Session) string {
	if x.Parent != "" || x.Cwd == "" || !IsPlainID(x.SessionID) {
		return ""
	}
	return "cd " + quote(x.Cwd) + " && claude --resume " + x.SessionID
}

// quote makes one word of s for a POSIX shell.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	if strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
