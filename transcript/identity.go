package transcript

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// FirstCwd returns the working directory in the first record that has one. lines is any number of lines; damaged ones
// are searched too. Unlike the name of a transcript's folder, it is reliable.
func FirstCwd(lines []byte) (cwd string, ok bool) {
	return first(lines, []byte(`"cwd"`), func(l *Line) []byte { return l.Cwd })
}

// FirstSessionID returns the sessionId in the first record that has one. For an agent's transcript outside a session's
// folder, it is the parent session.
func FirstSessionID(lines []byte) (id string, ok bool) {
	return first(lines, []byte(`"sessionId"`), func(l *Line) []byte { return l.SessionID })
}

// first finds the first record for which of is not empty. It skips lines that do not contain name, unless escapes may
// hide it.
func first(lines, name []byte, of func(*Line) []byte) (string, bool) {
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if !bytes.Contains(line, name) && !bytes.Contains(line, []byte(`\u00`)) && bytes.IndexByte(line, 0) < 0 {
			continue
		}
		l := Scan(line)
		if l.Shape != Malformed {
			if v := of(&l); len(v) > 0 {
				return Unquote(v), true
			}
			continue
		}
		for _, object := range Recover(line) {
			l := Scan(object)
			if v := of(&l); len(v) > 0 {
				return Unquote(v), true
			}
		}
	}
	return "", false
}

// StreamName returns the name of a transcript on the wire. name is "<session>" for a main transcript,
// "<session>/agent-<id>" for an agent's in its session's folder, and "agent-<id>" for an older one next to the
// sessions, which is placed under its parent if that is known; parent is escaped already. copies above 1 distinguishes
// further files of the same name.
func StreamName(name, parent string, copies int) string {
	name = EscapeName(name)
	if parent != "" && strings.HasPrefix(name, "agent-") && !strings.Contains(name, "/") {
		name = parent + "/" + name
	}
	if copies > 1 {
		name += "~" + strconv.Itoa(copies)
	}
	return name
}

// ParentName returns the session that an agent's transcript belongs to, "" if its name does not say.
func ParentName(name string) string {
	parent, _, found := strings.Cut(name, "/")
	if !found {
		return ""
	}
	return parent
}

// MainSession returns the session that a stream's work belongs to. An agent's work belongs to its parent session:
// parent, or if that is empty, the one in the stream's name.
func MainSession(stream, parent string) string {
	return cmp.Or(parent, ParentName(stream), stream)
}

// maxSessionName is the longest name of a session, in bytes.
const maxSessionName = 200

// ValidSession reports whether a session can have a name. The names come from others, and become parts of keys.
func ValidSession(name string) bool {
	return name != "" && len(name) <= maxSessionName && !strings.ContainsFunc(name, unicode.IsControl)
}

// ForgetNames returns the names whose forgetting covers a stream: its own first, each name once. A session's further
// file "<session>~2" is covered by "<session>", an agent's "<session>/agent-<id>" by its session. The daemon checks
// before it sends and the server before it stores, and both must agree. Nil for "".
func ForgetNames(stream string) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(stream)
	add(WithoutCopy(stream))
	parent := ParentName(stream)
	add(parent)
	add(WithoutCopy(parent))
	return names
}

// Covering returns the stream that the others belong to: a session among its further files and agents. It returns false
// if there is none.
func Covering(streams []string) (string, bool) {
	for _, name := range streams {
		if !slices.ContainsFunc(streams, func(other string) bool { return !slices.Contains(ForgetNames(other), name) }) {
			return name, true
		}
	}
	return "", false
}

// WithoutCopy returns a stream's name without the number that StreamName appends: the session's own.
func WithoutCopy(name string) string {
	i := strings.LastIndexByte(name, '~')
	if i < 0 || i+1 == len(name) || strings.Trim(name[i+1:], "0123456789") != "" {
		return name
	}
	return name[:i]
}

// HistoryName returns the stream of the prompt history next to a projects folder. The history belongs to no session, so
// it is named after the machine and the folder's path.
func HistoryName(machine, root string) string {
	sum := sha256.Sum256([]byte(root))
	return "history-" + machine + "-" + hex.EncodeToString(sum[:4])
}
