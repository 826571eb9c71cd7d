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

// CheckPath answers ErrBadPath for what is no clean relative path: with "..", from the root, with control characters,
// not UTF-8, or too long. Such paths name nothing here, whatever they would name elsewhere.
func CheckPath(p string) error {
	switch {
	case p == "", p == ".", len(p) > MaxPath, !utf8.ValidString(p), strings.HasPrefix(p, "/"), path.Clean(p) != p,
		p == "..", strings.HasPrefix(p, "../"), strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("%.60q: %w", p, ErrBadPath)
	}
	return nil
}

// conversational are the folders, below a session's, whose files belong to the conversation itself: who may read that
// may read them. Other files are contents of documents.
var conversational = []string{"tool-results/", "subagents/", "workflows/"}

// Conversational says whether a file of that name belongs to the conversation itself.
func Conversational(name string) bool {
	for _, folder := range conversational {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}
