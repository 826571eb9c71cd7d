package provenance

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Answer is what is known of a commit, in the form that client, server and people's scripts share. It has no text of a
// file.
type Answer struct {
	Commit    string         `json:"commit"` // "" is what is not committed yet
	Added     int            `json:"added"`  // lines that are not blank
	Sessions  []Author       `json:"sessions"`
	NotProven map[string]int `json:"not_proven"` // by reason: ByHand and the others
	Lines     []LineAnswer   `json:"lines,omitempty"`
}

// Author is a session that wrote lines.
type Author struct {
	SessionID string `json:"session_id"`
	Machine   string `json:"machine"`
	User      string `json:"user,omitempty"`
	Own       bool   `json:"own,omitempty"` // of the user who asks
	Title     string `json:"title,omitempty"`
	Lines     int    `json:"lines"`
	// ByPath: nothing says that the session was in this repository. The end of the path and the text decided.
	ByPath  bool     `json:"by_path,omitempty"`
	Prompts []Prompt `json:"prompts"`
}

// Prompt is a turn that wrote lines. Line is that of its prompt in the session's transcript, from 0; -1 when none is
// known.
type Prompt struct {
	Line  int64     `json:"line"`
	Lines int       `json:"lines"`
	Text  string    `json:"text,omitempty"`
	At    time.Time `json:"at,omitzero"` // of the first edit
	URL   string    `json:"url,omitempty"`
}

// LineAnswer is what is known of one line. SessionID is "" when none is proven; then Reason says why.
type LineAnswer struct {
	Path      string    `json:"path"`
	Line      int       `json:"line"` // in the file as committed, from 1
	SessionID string    `json:"session_id,omitempty"`
	Machine   string    `json:"machine,omitempty"`
	Prompt    *Prompt   `json:"prompt,omitempty"`
	At        time.Time `json:"at,omitzero"` // of the edit
	Formatted bool      `json:"formatted,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// Names tells who a session of a candidate is, and what the prompt of one of its edits was.
type Names interface {
	Author(session int) Author
	Prompt(session int, e *Edit) Prompt
}

// AnswerOf returns the answer about a commit, with each line if lines is set.
func AnswerOf(c Commit, candidates [][]Candidate, names Names, lines bool) Answer {
	d := Decide(c, candidates)
	out := Answer{Commit: c.Name, Added: d.Added, Sessions: []Author{}, NotProven: d.NotProven}
	for _, s := range d.Shares(candidates) {
		a := names.Author(s.Session)
		a.ByPath = !s.Same
		a.Lines, a.Prompts = s.Lines, make([]Prompt, 0, len(s.Prompts))
		for _, p := range s.Prompts {
			a.add(names.Prompt(s.Session, p.Edit), p.Lines)
		}
		out.Sessions = append(out.Sessions, a)
	}
	for _, l := range d.Lines {
		if lines {
			out.Lines = append(out.Lines, lineAnswer(&c.Files[l.File], l, candidates[l.File], names))
		}
	}
	return out
}

// add counts lines for a prompt. Agents of a session work for its prompts.
func (a *Author) add(p Prompt, lines int) {
	for i := range a.Prompts {
		if a.Prompts[i].Line == p.Line {
			a.Prompts[i].Lines += lines
			return
		}
	}
	p.Lines = lines
	a.Prompts = append(a.Prompts, p)
}

func lineAnswer(f *File, l Line, list []Candidate, names Names) LineAnswer {
	out := LineAnswer{Path: f.Paths[0], Line: f.Lines[l.Index].Number, Reason: l.Reason}
	if l.Candidate < 0 {
		return out
	}
	x := &list[l.Candidate]
	a, p := names.Author(x.Session), names.Prompt(x.Session, &x.Edit)
	p.Lines = 1
	out.SessionID, out.Machine, out.Prompt = a.SessionID, a.Machine, &p
	out.At, out.Formatted = x.At, !l.Exact
	return out
}

// Merge puts together what is known of several commits, or of lines of several: the sum of all.
func Merge(list []Answer) (out Answer) {
	out = Answer{Sessions: []Author{}, NotProven: map[string]int{}}
	for _, a := range list {
		out.Added += a.Added
		for reason, n := range a.NotProven {
			out.NotProven[reason] += n
		}
		for _, s := range a.Sessions {
			i := 0
			for i < len(out.Sessions) && out.Sessions[i].key() != s.key() {
				i++
			}
			if i == len(out.Sessions) {
				first := s
				first.Lines, first.Prompts = 0, nil
				out.Sessions = append(out.Sessions, first)
			}
			out.Sessions[i].Lines += s.Lines
			for _, p := range s.Prompts {
				out.Sessions[i].add(p, p.Lines)
			}
		}
	}
	return out
}

func (a *Author) key() string { return cmp.Or(a.User, "-") + "/" + a.Machine + "/" + a.SessionID }

// Commits are those of a question. Reading them from JSON takes no more memory than the largest question needs.
type Commits []Commit

// maxCommas is how many parts the JSON of a question has.
const maxCommas = 200_000

// UnmarshalJSON implements json.Unmarshaler.
func (c *Commits) UnmarshalJSON(text []byte) error {
	if bytes.Count(text, []byte(",")) > maxCommas {
		return errors.New("too many commits or lines: ask about fewer at once")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode((*[]Commit)(c))
}

// MaxLink is how long the text of a link is at most, in bytes: longer addresses are refused on their way.
const MaxLink = 6000

// maxLinked is how much a link holds, in bytes.
const maxLinked = 256 << 10

// Link writes a question about commits as text that fits into an address; ok is false when it is too long.
func Link(commits []Commit) (text string, ok bool, err error) {
	plain, err := json.Marshal(commits)
	if err != nil {
		return "", false, fmt.Errorf("write link: %w", err)
	}
	var b strings.Builder
	encoder := base64.NewEncoder(base64.RawURLEncoding, &b)
	packed, err := flate.NewWriter(encoder, flate.BestCompression)
	if err == nil {
		_, err = packed.Write(plain)
	}
	if err == nil {
		err = packed.Close()
	}
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return "", false, fmt.Errorf("write link: %w", err)
	}
	return b.String(), b.Len() <= MaxLink && len(plain) <= maxLinked, nil
}

var errLink = errors.New("not a link of `ccship why`")

// ParseLink reads what Link wrote.
func ParseLink(text string) (commits Commits, err error) {
	packed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errLink
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxLinked))
	if err != nil || json.Unmarshal(plain, &commits) != nil {
		return nil, errLink
	}
	for _, c := range commits {
		for _, f := range c.Files {
			if len(f.Paths) == 0 {
				return nil, errLink
			}
		}
	}
	return commits, nil
}
