package library

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript"
)

// Lost lists sessions that are not on this disk.
type Lost struct {
	SchemaVersion int `json:"schema_version"`
	// Gone are sessions in the prompt history that neither the disk nor the server has. Only their prompts are left.
	Gone []Gone `json:"gone"`
	// Restorable are this machine's sessions that only the server has.
	Restorable []Item `json:"restorable"`
}

// Gone is a session of which only the prompts are left.
type Gone struct {
	Session string    `json:"session"`
	Project string    `json:"project"` // the folder it was started in
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   int       `json:"prompts"`
	Prompts []Prompt  `json:"texts"` // the first ones
}

// Prompt is a line of the prompt history.
type Prompt struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// keptPrompts is how many prompts of a session are kept, keptText how many bytes of each.
const (
	keptPrompts = 20
	keptText    = 2000
)

// Lost finds the sessions that are missing on this machine's disk.
func (l *Library) Lost(ctx context.Context) (Lost, error) {
	if l.Server == nil {
		return Lost{}, NoServer()
	}
	out := Lost{SchemaVersion: control.SchemaVersion, Gone: []Gone{}, Restorable: []Item{}}
	named := map[string]*Gone{}
	for _, dir := range claudeFolders(l.Roots) {
		if err := readHistory(ctx, filepath.Join(dir, "history.jsonl"), named); err != nil {
			return out, err
		}
	}
	disk := bySession(Disk(l.Roots))
	isHere := func(session string) bool {
		_, is := fileOf(disk, session)
		return is
	}
	err := l.Server.Sessions(ctx, remote.Query{}, 1000, func(s *remote.Session) bool {
		delete(named, s.SessionID)
		if s.Machine == l.Machine && !isHere(s.SessionID) && conversation(s) {
			out.Restorable = append(out.Restorable, l.item(s, nil))
		}
		return true
	})
	if err != nil {
		return out, err
	}
	for session, g := range named {
		if !isHere(session) {
			out.Gone = append(out.Gone, *g)
		}
	}
	slices.SortFunc(out.Gone, func(a, b Gone) int {
		return cmp.Or(b.Last.Compare(a.Last),
			cmp.Compare(a.Session, b.Session))
	})
	slices.SortStableFunc(out.Restorable, func(a, b Item) int { return b.ChangedAt.Compare(a.ChangedAt) })
	return out, nil
}

// claudeFolders returns the folders that hold the projects folders, each once.
func claudeFolders(roots []string) (dirs []string) {
	for _, root := range roots {
		if dir := filepath.Dir(root); filepath.Base(root) == "projects" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// readHistory collects the sessions in a prompt history. It skips lines that it cannot parse.
func readHistory(ctx context.Context, path string, into map[string]*Gone) error {
	err := eachLine(ctx, path, func(line []byte, _ bool) error {
		var said struct {
			Display   string  `json:"display"`
			Timestamp float64 `json:"timestamp"` // as transcript.UnixTime takes it
			Project   string  `json:"project"`
			Session   string  `json:"sessionId"`
		}
		if json.Unmarshal(line, &said) == nil && said.Session != "" {
			note(into, said.Session, said.Project, Prompt{transcript.UnixTime(int64(said.Timestamp)), said.Display})
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func note(into map[string]*Gone, session, project string, p Prompt) {
	g := into[session]
	if g == nil {
		g = &Gone{Session: session, Project: project, First: p.At, Last: p.At}
		into[session] = g
	}
	g.Count++
	if g.First.IsZero() || !p.At.IsZero() && p.At.Before(g.First) { // zero: not known
		g.First = p.At
	}
	if p.At.After(g.Last) {
		g.Last = p.At
	}
	if len(g.Prompts) < keptPrompts {
		if len(p.Text) > keptText {
			p.Text = strings.ToValidUTF8(p.Text[:keptText], "") + "…"
		}
		g.Prompts = append(g.Prompts, p)
	}
}

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
		if project == "" || l.inProject(&h, file, project) {
			items = append(items, l.fileItem(&h, activeFile{file, file.active()}, 0))
		}
	}
	return items
}

// Grep finds sessions on disk that hold all words of a text, whatever their case; words in double quotes stand next to
// each other. It returns one match a session: first those with most of the words in one line that a person or Claude
// said, of equal ones the last changed.
func (l *Library) Grep(ctx context.Context, text, project string, limit int) []Match {
	words := wanted(text)
	var found []graded
	if len(words) == 0 {
		return nil
	}
	best := 0 // how many are as good as can be: no later one comes before them
	for _, file := range Disk(l.Roots) {
		if best == limit || ctx.Err() != nil {
			break
		}
		m := grep(ctx, file, words)
		if m.match == nil {
			continue
		}
		h := readHead(file.Path)
		m.match.Item = l.fileItem(&h, activeFile{file, file.active()}, 0)
		if project == "" || l.inProject(&h, file, project) {
			found = append(found, m)
			if m.grade == gradeOf(len(words), true) {
				best++
			}
		}
	}
	slices.SortStableFunc(found, func(a, b graded) int { return cmp.Compare(b.grade, a.grade) })
	out := make([]Match, 0, min(len(found), limit))
	for _, m := range found[:min(len(found), limit)] {
		out = append(out, *m.match)
	}
	return out
}

// graded is a match, and how good it is.
type graded struct {
	match *Match
	grade int
}

// gradeOf is how good a line with some of the words is.
func gradeOf(words int, said bool) int {
	if said {
		return 2*words + 1
	}
	return 2 * words
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

// maxUnread is how many lines of a file with equally many words are understood without finding a better one: records
// have some words in their names.
const maxUnread = 200

// grep finds the best line of a file that has all words: the first with most of them, of those that a person or Claude
// said before others. The match is nil when it has not all, or none in what is read.
func grep(ctx context.Context, file File, words []string) (best graded) {
	asked, wide := asWritten(words)
	var lower []byte
	n, left, unread := int64(-1), len(asked), make([]int, len(asked)+1) // unread: by how many words a line has
	_ = eachLine(ctx, file.Path, func(line []byte, _ bool) error {      // what cannot be read has no match
		n++
		if lower = lowered(lower, line); wide {
			lower = bytes.ToLower(line)
		}
		has := 0
		for i := range asked {
			if !bytes.Contains(lower, asked[i].text) {
				continue
			}
			if has++; !asked[i].found {
				asked[i].found = true
				left--
			}
		}
		if has == 0 || gradeOf(has, true) <= best.grade || unread[has] == maxUnread {
			return nil
		}
		unread[has]++
		if m := matchIn(n, line, words); m.grade > best.grade {
			best = m
			clear(unread)
		}
		if best.grade == gradeOf(len(words), true) {
			return io.EOF // no other is better
		}
		return nil
	})
	if left > 0 && best.grade < gradeOf(len(words), false) { // a line that has all may have some as escapes
		return graded{}
	}
	return best
}

// needle is a word as a record has it.
type needle struct {
	text  []byte
	found bool
}

// asWritten are words as a record has them. wide: some are not of ASCII, whose case takes more work.
func asWritten(words []string) (out []needle, wide bool) {
	for _, w := range words {
		out = append(out, needle{text: []byte(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w))})
		wide = wide || strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf })
	}
	return out, wide
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

// matchIn returns the message of a line that has most of the words; the match is nil when they are only in what nobody
// reads.
func matchIn(n int64, line []byte, words []string) (best graded) {
	var w window
	w.add(n, line)
	for _, p := range w.passages() {
		text := strings.ToLower(p.Text)
		if len(text) != len(p.Text) { // positions would be wrong
			p.Text = text
		}
		first, has, length := -1, 0, 0
		for _, word := range words {
			at := strings.Index(text, word)
			if at < 0 {
				continue
			}
			if has++; first < 0 {
				first, length = at, len(word)
			}
		}
		kind := kindOf(p.Kind)
		if grade := gradeOf(has, kind == "prompt" || kind == "answer"); has > 0 && grade > best.grade {
			best = graded{&Match{Line: n, Kind: kind, At: p.At, Snippet: snippet(p.Text, first, length)}, grade}
		}
	}
	return best
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
