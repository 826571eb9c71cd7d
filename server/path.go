package server

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPath bounds a document's path and a file's name, in bytes.
const MaxPath = 4 << 10

// CheckPath returns ErrBadPath unless p is a clean relative path: no "..", not absolute, no control characters, UTF-8
// and not too long. Other paths name nothing on the server, whatever they name elsewhere.
func CheckPath(p string) error {
	switch {
	case p == "", p == ".", len(p) > MaxPath, !utf8.ValidString(p), strings.HasPrefix(p, "/"), path.Clean(p) != p,
		p == "..", strings.HasPrefix(p, "../"), strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("%.60q: %w", p, ErrBadPath)
	}
	return nil
}

// conversational are the folders of a session whose files belong to the conversation: they are as visible as its lines.
// Other files are contents of documents.
var conversational = []string{"tool-results/", "subagents/", "workflows/"}

// Conversational reports whether a file with that name belongs to the conversation itself.
func Conversational(name string) bool {
	for _, folder := range conversational {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}
