package library

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

// Why is the document of `ccship why --json` about commits.
type Why struct {
	SchemaVersion int                 `json:"schema_version"`
	Commits       []provenance.Answer `json:"commits"`
}

// WhyLines is the document of `ccship why --json` about lines.
type WhyLines struct {
	SchemaVersion int       `json:"schema_version"`
	Lines         []WhyLine `json:"lines"`
}

// WhyLine is what is known of a line: the same as of a commit.
type WhyLine struct {
	Line      int                 `json:"line"` // of the file now, from 1
	Commit    string              `json:"commit"`
	Steps     int                 `json:"later_commits"` // that only moved or formatted it
	Formatted bool                `json:"formatted,omitempty"`
	Sessions  []provenance.Author `json:"sessions"`
	NotProven map[string]int      `json:"not_proven"`

	Text string `json:"-"`
}

// WhyLineOf returns what an answer about a commit says of one line of a file. One that was not compared is blank, or
// holds a secret.
func WhyLineOf(a *provenance.Answer, path string, line int) WhyLine {
	out := WhyLine{Sessions: []provenance.Author{}, NotProven: map[string]int{}}
	for _, l := range a.Lines {
		if l.Path != path || l.Line != line {
			continue
		}
		if l.SessionID == "" {
			out.NotProven[l.Reason] = 1
			return out
		}
		for _, s := range a.Sessions {
			if s.SessionID == l.SessionID && s.Machine == l.Machine {
				s.Lines, s.Prompts = 1, []provenance.Prompt{*l.Prompt}
				out.Sessions, out.Formatted = []provenance.Author{s}, l.Formatted
				return out
			}
		}
	}
	out.NotProven[provenance.NotCompared] = 1
	return out
}

// Written is what the transcripts on disk say that sessions wrote to some files.
type Written struct {
	Project func(cwd, folder string) string // the hash by which sessions of a repository are known

	machine string
	names   map[string]bool // of files, as provenance.Name has them
	edits   map[string][]provenance.Candidate
	writers []writer
	ids     map[string]int
}

// writer is a session that wrote to one of the files.
type writer struct {
	provenance.Author
	project string
	prompts []provenance.Prompt // in the order of their lines
}

// Written reads the transcripts on disk of sessions that may have written to files of these commits.
func (l *Library) Written(commits []provenance.Commit, project func(cwd, folder string) string) (*Written, error) {
	w := &Written{Project: project, machine: l.Machine, names: map[string]bool{}, ids: map[string]int{},
		edits: map[string][]provenance.Candidate{}}
	for _, c := range commits {
		for _, f := range c.Files {
			for _, p := range f.Paths {
				w.names[provenance.Name(p)] = true
			}
		}
	}
	all := agents{}
	for _, f := range Disk(l.Roots) {
		paths := append([]string{f.Path}, all.of(f)...)
		if !slices.ContainsFunc(paths, w.mentionedIn) {
			continue
		}
		for i, path := range paths {
			if err := w.read(f, path, i > 0); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
	}
	return w, nil
}

// read adds the edits of a transcript, of a session or of one of its agents.
func (w *Written) read(file File, path string, agent bool) error {
	fold, b := &session.Fold{}, &provenance.Builder{Session: file.Session}
	var prompts []provenance.Prompt
	var edits []provenance.Edit
	n := int64(-1)
	err := eachLine(context.Background(), path, func(line []byte, _ bool) error {
		n++
		for _, r := range transcript.Records(bytes.TrimSuffix(line, []byte("\r"))) {
			events := fold.Add(n, r)
			for _, e := range events {
				if e.Kind == session.PromptEvent {
					prompts = append(prompts, provenance.Prompt{Line: n, Text: transcript.OneLine(e.Text, maxPromptText), At: e.Time})
				}
			}
			for _, e := range b.Add(n, &r, events) {
				if w.names[provenance.Name(e.Path)] {
					edits = append(edits, e)
				}
			}
		}
		return nil
	})
	if err == nil {
		w.add(file, agent, fold.Summary(), prompts, edits)
	}
	return err
}

// maxPromptText is how much of a prompt is shown, in characters.
const maxPromptText = 300

// maxLooked is for how many names a transcript is looked through; understanding it costs no more than looking for more.
const maxLooked = 20

// mentionedIn reports whether one of the names may be in a transcript, so that most need not be understood.
func (w *Written) mentionedIn(path string) bool {
	if len(w.names) > maxLooked {
		return true
	}
	f, err := sys.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const overlap = 1 << 10
	buf := make([]byte, 1<<20)
	have := 0
	for {
		n, err := f.Read(buf[have:])
		text := bytes.ToLower(buf[:have+n])
		for name := range w.names {
			if bytes.Contains(text, []byte(name)) || !ascii(name) {
				return true
			}
		}
		if err != nil {
			return false
		}
		have = copy(buf, buf[max(0, have+n-overlap):have+n])
	}
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || r == '"' || r == '\\' })
}

// add notes what a transcript wrote. Agents write for their session; which prompt they work for, their times tell.
func (w *Written) add(file File, agent bool, sum session.Summary, prompts []provenance.Prompt,
	edits []provenance.Edit) {
	i, known := w.ids[file.Session]
	if !known {
		i = len(w.writers)
		w.ids[file.Session] = i
		w.writers = append(w.writers,
			writer{Author: provenance.Author{SessionID: file.Session, Machine: w.machine, Own: true}})
	}
	x := &w.writers[i]
	if !agent && x.prompts == nil {
		x.Title, x.prompts = sum.Title, prompts
		x.project = w.Project(sum.FirstCwd, filepath.Base(filepath.Dir(file.Path)))
	}
	for _, e := range edits {
		if agent {
			e.Agent = "agent"
		}
		name := provenance.Name(e.Path)
		w.edits[name] = append(w.edits[name], provenance.Candidate{Edit: e, Session: i})
	}
}

// Answer tells what is known of a commit.
func (w *Written) Answer(c provenance.Commit, lines bool) provenance.Answer {
	lists := make([][]provenance.Candidate, len(c.Files))
	for i, f := range c.Files {
		var done []string
		for _, p := range f.Paths {
			if name := provenance.Name(p); !slices.Contains(done, name) {
				done = append(done, name)
				lists[i] = append(lists[i], w.edits[name]...)
			}
		}
		for at := range lists[i] {
			x := &lists[i][at]
			x.Same = c.Project != "" && w.writers[x.Session].project == c.Project
		}
	}
	return provenance.AnswerOf(c, lists, w, lines)
}

// Author implements provenance.Names.
func (w *Written) Author(session int) provenance.Author { return w.writers[session].Author }

// Prompt implements provenance.Names.
func (w *Written) Prompt(session int, e *provenance.Edit) provenance.Prompt {
	out := provenance.Prompt{Line: -1, At: e.At}
	for _, p := range w.writers[session].prompts {
		before := p.Line <= e.Prompt
		if e.Agent != "" {
			before = !p.At.After(e.At)
		}
		if before {
			out.Line, out.Text = p.Line, p.Text
		}
	}
	return out
}
