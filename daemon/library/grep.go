package library

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/protocol"
)

// Match is a session on disk in which a text was found: the line that says most, and a part of it.
type Match struct {
	Item
	Line    int64
	Kind    string // as a server names it: prompt, answer, tool, result, message, error
	At      *time.Time
	Snippet []protocol.Piece
}

// Recent lists the sessions on disk whose files changed last, of a project or, with "", of all. They have no numbers:
// only the beginning of each is read.
func (l *Library) Recent(ctx context.Context, project string, limit int) []Item {
	var items []Item
	for _, file := range Disk(l.Roots) {
		if len(items) == limit || ctx.Err() != nil {
			break
		}
		h := readHead(file.Path)
		if project == "" || l.called(&h, file, project) {
			items = append(items, l.fileItem(&h, activeFile{file, file.active()}, 0))
		}
	}
	return items
}

// Grep finds lines on disk that hold all words of a text, whatever their case; words in double quotes stand next to
// each other. It returns one match a session, the last changed first.
func (l *Library) Grep(ctx context.Context, text, project string, limit int) []Match {
	words := wanted(text)
	var found []Match
	if len(words) == 0 {
		return nil
	}
	for _, file := range Disk(l.Roots) {
		if len(found) == limit || ctx.Err() != nil {
			break
		}
		m := grep(ctx, file, words)
		if m == nil {
			continue
		}
		h := readHead(file.Path)
		m.Item = l.fileItem(&h, activeFile{file, file.active()}, 0)
		if project == "" || l.called(&h, file, project) {
			found = append(found, *m)
		}
	}
	return found
}

// wanted returns the words and phrases of a text, in lower case.
func wanted(text string) (words []string) {
	for i, part := range strings.Split(strings.ToLower(text), `"`) {
		if i%2 == 1 {
			words = append(words, strings.Join(strings.Fields(part), " "))
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	kept := words[:0]
	for _, w := range words {
		if w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}

// grep finds the best line of a file: the first that a person or Claude said, else the first.
func grep(ctx context.Context, file File, words []string) (best *Match) {
	ascii, other := asWritten(words)
	var lower []byte
	n := int64(-1)
	_ = eachLine(ctx, file.Path, func(line []byte, _ bool) error { // what cannot be read has no match
		n++
		lower = lowered(lower, line)
		if !holdsAll(lower, ascii) || len(other) > 0 && !holdsAll(bytes.ToLower(line), other) {
			return nil
		}
		m := matchIn(n, line, words)
		if m != nil && (m.Kind == "prompt" || m.Kind == "answer") {
			best = m
			return io.EOF // no other is better
		}
		best = cmp.Or(best, m)
		return nil
	})
	return best
}

// asWritten are words as a record has them: those of ASCII, and the others, whose case takes more work.
func asWritten(words []string) (ascii, other [][]byte) {
	for _, w := range words {
		quoted := []byte(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w))
		if strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf }) {
			other = append(other, quoted)
			continue
		}
		ascii = append(ascii, quoted)
	}
	return ascii, other
}

// lowered writes a line into a buffer, its ASCII letters in lower case.
func lowered(into, line []byte) []byte {
	into = slices.Grow(into[:0], len(line))[:len(line)]
	for i, c := range line {
		if c-'A' <= 'Z'-'A' {
			c += 'a' - 'A'
		}
		into[i] = c
	}
	return into
}

func holdsAll(line []byte, words [][]byte) bool {
	for _, w := range words {
		if !bytes.Contains(line, w) {
			return false
		}
	}
	return true
}

// matchIn returns the message of a line that holds all words; nil: they are only in what nobody reads.
func matchIn(n int64, line []byte, words []string) *Match {
	var w window
	w.add(n, line)
	for _, p := range w.passages() {
		text := strings.ToLower(p.Text)
		if len(text) != len(p.Text) { // positions would be wrong
			p.Text = text
		}
		at := strings.Index(text, words[0])
		for _, word := range words {
			if at >= 0 && !strings.Contains(text, word) {
				at = -1
			}
		}
		if at >= 0 {
			return &Match{Line: n, Kind: kindOf(p.Kind), At: p.At, Snippet: snippet(p.Text, at, len(words[0]))}
		}
	}
	return nil
}

func kindOf(kind string) string {
	switch kind {
	case "user":
		return "prompt"
	case "assistant":
		return "answer"
	case "tool_start":
		return "tool"
	case "tool_complete":
		return "result"
	}
	return kind
}

// snippetBytes is how much of a text is shown before and after a word.
const snippetBytes = 120

// snippet returns a part of a text around a word.
func snippet(text string, at, n int) []protocol.Piece {
	from, to := max(0, at-snippetBytes), min(len(text), at+n+snippetBytes)
	return []protocol.Piece{
		{Text: strings.ToValidUTF8(text[from:at], "")}, {Text: text[at : at+n], Match: true},
		{Text: strings.ToValidUTF8(text[at+n:to], "")},
	}
}
