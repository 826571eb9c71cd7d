package derive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

// Bounds of one answer.
const (
	maxWhyLines   = 40_000 // of commits, in one question
	maxWhyCommits = 500
	maxWhyPaths   = 16        // of a file
	whyEdits      = 2000      // of files with one name, the last ones before a commit
	whyEdit       = 8         // what an edit takes besides its lines
	maxWhyHeld    = 4_000_000 // lines of edits that are compared with a commit's files
	whyPrompts    = 200       // of a session that are looked through for an agent's
	maxShared     = 400_000   // lines and files, of each session that a commit is compared with alone
)

// written is what sessions that a scope sees wrote to the files of commits.
type written struct {
	URL func(x server.Session, line int64) string // where a browser shows a line; nil: nowhere

	store   AnswerStore
	ctx     context.Context //nolint:containedctx // provenance.Names has no context
	scope   server.Scope
	users   func(owner int64) string
	list    []server.WrittenEdit // one of each session
	agents  map[string]server.WrittenEdit
	ids     map[sessionKey]int
	prompts map[promptKey]provenance.Prompt
	same    map[string]bool // hashes of the projects of the commit's repository
	err     error
}

type sessionKey struct {
	owner       int64
	machine, id string
}

type promptKey struct {
	session int
	line    int64
	agent   string
	at      time.Time
}

// AnswerWhy tells what is known of commits, with each line if lines is set. users are the names of users.
// server.ErrBusy when the time for an answer does not suffice. With Share set, shares are what single sessions wrote.
func AnswerWhy(ctx context.Context, st AnswerStore, scope server.Scope, users func(int64) string,
	q WhyQuery) (out []provenance.Answer, shares []server.CommitShare, err error) {
	err = within(ctx, func(ctx context.Context) error {
		left := maxShared
		for _, c := range q.Commits {
			w := newWritten(ctx, st, scope, users)
			w.URL = q.URL
			lists, err := w.candidates(c)
			if err != nil {
				return err
			}
			out = append(out, provenance.AnswerOf(c, lists, w, q.Lines))
			if w.err != nil {
				return w.err
			}
			if q.Share {
				some, err := w.shares(c, lists, &left)
				if err != nil {
					return err
				}
				shares = append(shares, some...)
			}
		}
		return nil
	})
	return out, shares, err
}

func newWritten(ctx context.Context, st AnswerStore, scope server.Scope, users func(int64) string) *written {
	return &written{store: st, ctx: ctx, scope: scope, users: users, ids: map[sessionKey]int{},
		agents: map[string]server.WrittenEdit{}, prompts: map[promptKey]provenance.Prompt{}}
}

// WhyQuery is a question about commits.
type WhyQuery struct {
	Commits []provenance.Commit
	Lines   bool
	Share   bool // what single sessions wrote too
	URL     func(x server.Session, line int64) string
}

// Check refuses a question that is too large, and one about a file without a path.
func (q WhyQuery) Check() error {
	lines := 0
	for _, c := range q.Commits {
		for _, f := range c.Files {
			if len(f.Paths) == 0 || len(f.Paths) > maxWhyPaths {
				return fmt.Errorf("a file has no path, or more than %d", maxWhyPaths)
			}
			lines += len(f.Lines) + len(f.Paths)
		}
	}
	if len(q.Commits) > maxWhyCommits || lines > maxWhyLines {
		return fmt.Errorf("more than %d commits, or %d lines: ask about fewer at once", maxWhyCommits, maxWhyLines)
	}
	return nil
}

// candidates returns the edits of each file of a commit.
func (w *written) candidates(c provenance.Commit) ([][]provenance.Candidate, error) {
	if err := w.findRepository(c.Project); err != nil {
		return nil, err
	}
	sums, found := sumsOf(c), map[string][]provenance.Candidate{}
	held := 0
	for name := range sums {
		list, err := w.store.EditsOf(w.ctx, w.scope,
			server.EditQuery{Name: name, To: c.At, Limit: whyEdits, Sums: sums[name]})
		if err != nil {
			return nil, err
		}
		for _, x := range list {
			found[name] = append(found[name], w.candidate(x))
			held += whyEdit + len(x.Sums)
		}
		if held > maxWhyHeld {
			return nil, fmt.Errorf("too many edits of these files: %w", server.ErrBusy)
		}
	}
	out := make([][]provenance.Candidate, len(c.Files))
	for i, f := range c.Files {
		for name := range namesOf(f) {
			for _, x := range found[name] {
				if provenance.SamePath(x.Path, f.Paths) {
					out[i] = append(out[i], x)
					held += whyEdit + len(x.Sums)
				}
			}
		}
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		if held > 2*maxWhyHeld {
			return nil, fmt.Errorf("too many edits of these files: %w", server.ErrBusy)
		}
	}
	return out, nil
}

// sumsOf returns the lines of a commit's files by the files' names.
func sumsOf(c provenance.Commit) map[string][]provenance.Sum {
	sums := map[string][]provenance.Sum{}
	for _, f := range c.Files {
		for name := range namesOf(f) {
			for _, l := range f.Lines {
				sums[name] = append(sums[name], l.Sum)
			}
		}
	}
	return sums
}

func namesOf(f provenance.File) map[string]bool {
	out := map[string]bool{}
	for _, p := range f.Paths {
		out[provenance.Name(p)] = true
	}
	return out
}

// findRepository finds what the scope sees of the repository that a project is a clone or a worktree of.
func (w *written) findRepository(project string) error {
	w.same = map[string]bool{}
	if project == "" {
		return nil
	}
	groups, err := w.store.Groups(w.ctx, w.scope, server.GroupQuery{Project: project})
	for _, g := range groups.List {
		w.same[g.ProjectHash] = g.ProjectHash != ""
	}
	return err
}

// candidate returns a stored edit. Agents write for their session.
func (w *written) candidate(x server.WrittenEdit) provenance.Candidate {
	id := x.SessionID
	if x.Parent != "" {
		x.Agent, id = x.SessionID, x.Parent
		w.agents[x.Agent] = x
	}
	k := sessionKey{x.Owner, x.Machine, id}
	at, known := w.ids[k]
	if !known {
		at = len(w.list)
		w.ids[k] = at
		w.list = append(w.list, x)
	} else if x.Parent == "" {
		w.list[at] = x
	}
	x.Copied = x.Copied || x.Copy
	return provenance.Candidate{Edit: x.Edit, Session: at, Same: w.same[x.ProjectHash]}
}

// Author implements provenance.Names.
func (w *written) Author(at int) provenance.Author {
	x := &w.list[at]
	id := x.SessionID
	if x.Parent != "" {
		id = x.Parent
	}
	return provenance.Author{SessionID: id, Machine: x.Machine, User: w.users(x.Owner), Own: x.Owner == w.scope.User,
		Title: x.Title}
}

// Prompt implements provenance.Names.
func (w *written) Prompt(at int, e *provenance.Edit) provenance.Prompt {
	k := promptKey{session: at, line: e.Prompt, agent: e.Agent}
	if e.Agent != "" {
		k.at = e.At
	}
	p, known := w.prompts[k]
	if !known {
		var err error
		if p, err = w.prompt(at, e); err != nil && w.err == nil {
			w.err = err
		}
		w.prompts[k] = p
	}
	p.At = e.At
	return p
}

// prompt looks for the prompt of an edit: the one that its line follows, of an agent the last one before it.
func (w *written) prompt(at int, e *provenance.Edit) (provenance.Prompt, error) {
	out := provenance.Prompt{Line: -1}
	x := server.Session{ID: w.list[at].Stream, Owner: w.list[at].Owner, Machine: w.list[at].Machine,
		SessionID: w.list[at].SessionID}
	q := server.MomentQuery{Owner: x.Owner, Stream: x.ID, To: e.Prompt + 1, Backwards: true, Limit: 1,
		Kinds: []string{string(session.TimelinePrompt)}}
	if e.Agent != "" {
		parent, err := w.parent(w.agents[e.Agent])
		if err != nil || parent.ID == 0 {
			return out, err
		}
		x, q.Stream, q.To, q.Limit = parent, parent.ID, 0, whyPrompts
	}
	if e.Agent == "" && e.Prompt < 0 {
		return out, nil
	}
	list, err := w.store.Moments(w.ctx, q)
	if err != nil {
		return out, err
	}
	for _, m := range decode(list) {
		if e.Agent == "" || !m.At.After(e.At) {
			out.Line, out.Text = m.Line, m.Text
			if w.URL != nil {
				out.URL = w.URL(x, m.Line)
			}
			return out, nil
		}
	}
	return out, nil
}

// parent returns the session of an agent; the zero Session when it is not stored, or not visible.
func (w *written) parent(x server.WrittenEdit) (server.Session, error) {
	s, err := sessionOf(w.ctx, w.store, w.scope, server.Ref{SessionID: x.Parent, Owner: x.Owner, Machine: &x.Machine})
	if errors.Is(err, server.ErrNotFound) {
		return server.Session{}, nil
	}
	return s, err
}

var fullHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// shares are what sessions wrote of a commit, each compared with it alone: who may read one of them learns nothing of
// the others. They are those of the user who asks, and all for an owner, because a question can name any commit: nobody
// else puts one on a session's page. left is how much more is compared.
func (w *written) shares(c provenance.Commit, lists [][]provenance.Candidate, left *int) (out []server.CommitShare,
	err error) {
	if c.Bot || !fullHash.MatchString(c.Name) {
		return nil, nil
	}
	places, size := w.mayShare(c, lists), len(c.Files)
	for _, f := range c.Files {
		size += len(f.Lines)
	}
	alone := make([][]provenance.Candidate, len(lists))
	for at := range w.list {
		if len(places[at]) == 0 || *left < size {
			continue
		}
		*left -= size
		clear(alone)
		for _, p := range places[at] {
			alone[p.file] = append(alone[p.file], lists[p.file][p.at])
		}
		d := provenance.Decide(c, alone)
		lines := d.Added
		for _, n := range d.NotProven {
			lines -= n
		}
		if lines == 0 {
			continue
		}
		x := w.list[at]
		stream := x.Stream
		if x.Parent != "" {
			parent, err := w.parent(x)
			if err != nil {
				return nil, err
			}
			if stream = parent.ID; stream == 0 {
				continue // only its agents are stored
			}
		}
		out = append(out, server.CommitShare{Owner: x.Owner, Stream: stream, CommitShare: protocol.CommitShare{
			Commit: c.Name, At: c.At, Added: int64(d.Added), Lines: int64(lines)}})
	}
	return out, nil
}

// place is a candidate of a file.
type place struct{ file, at int }

// mayShare are the edits of each session that may have a share of a commit: some of them added a line that says
// something, unless none of the commit's does.
func (w *written) mayShare(c provenance.Commit, lists [][]provenance.Candidate) map[int][]place {
	telling := map[provenance.Key]bool{}
	for _, f := range c.Files {
		for _, l := range f.Lines {
			if !l.Plain {
				telling[l.Sum.Key()] = true
			}
		}
	}
	out, says := map[int][]place{}, map[int]bool{}
	for i, list := range lists {
		for at := range list {
			x := &list[at]
			if x.Copied || len(x.Sums) == 0 || !w.scope.All && w.list[x.Session].Owner != w.scope.User {
				continue
			}
			out[x.Session] = append(out[x.Session], place{i, at})
			says[x.Session] = says[x.Session] || len(telling) == 0 ||
				slices.ContainsFunc(x.Sums, func(s provenance.Sum) bool { return telling[s.Key()] })
		}
	}
	maps.DeleteFunc(out, func(session int, _ []place) bool { return !says[session] })
	return out
}
