package recall

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// Bounds of one answer.
const (
	fixHits   = 60       // occurrences that are looked at
	fixBytes  = 8 << 20  // of lines read for one episode
	fixTotal  = 48 << 20 // of lines read for all
	fixBefore = 200      // lines before an occurrence in which its call is looked for
	maxSteps  = 40       // of an episode, the last ones
	maxStep   = 400      // characters of a step's text
)

// How an episode ended.
const (
	Fixed       = "fixed"        // the call that had failed succeeded
	LikelyFixed = "likely_fixed" // a similar command succeeded, and the error did not occur again
	Gone        = "gone"         // it did not occur again, but nothing shows that it was fixed
	Open        = "open"         // it was the last thing that happened, or occurred until the end of what was read
)

// Step is a tool call.
type Step struct {
	Line   int64
	At     time.Time
	Kind   string // server.EditKind, server.CommandKind; for other calls the tool's name
	Text   string // path or command, on one line
	Failed bool

	exact string // what the call is compared by
	line  int64  // of its result
}

// Episode is an error, and what was done until it did not occur any more.
type Episode struct {
	server.Hit
	Prompt  *session.Moment // that the turn began with
	Call    *Step           // that failed; nil: not a tool call's error
	Again   int             // how often the error occurred again
	Steps   []Step          // edits and commands after the first occurrence, up to Success
	Success *Step           // the call that shows the error is gone
	Outcome string
	Cut     bool // the episode goes on behind what was read

	end int64 // the last line that belongs to it
}

// Fix lists where an error occurred, newest first, and what followed until it did not occur again. q chooses sessions
// and has the text, all of whose words must be next to each other, or, if that finds nothing, in one error. Limit is
// the number of episodes.
func Fix(ctx context.Context, st Store, scope server.Scope, q server.SearchQuery) (out []Episode, err error) {
	err = within(ctx, func(ctx context.Context) error {
		out, err = fix(ctx, st, scope, q)
		return err
	})
	return out, err
}

func fix(ctx context.Context, st Store, scope server.Scope, q server.SearchQuery) ([]Episode, error) {
	text, limit := strings.TrimSpace(strings.ReplaceAll(q.Text, `"`, " ")), q.Limit
	q.Limit, q.Superseded = fixHits, false
	var hits server.Hits
	var err error
	for _, try := range []struct {
		text string
		kind string
	}{{`"` + text + `"`, server.ErrorKind}, {`"` + text + `"`, "result"}, {text, server.ErrorKind}} {
		q.Text, q.Kinds = try.text, []string{try.kind}
		if hits, err = search(ctx, st, scope, q); err != nil {
			return nil, err
		}
		if len(hits.List) > 0 {
			break
		}
	}
	r := reader{st: st, scope: scope, words: needles(q.Text), left: fixTotal}
	out, err := r.episodes(ctx, hits.List, limit)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Prompt, err = promptBefore(ctx, st, &out[i].Session, out[i].Line); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// search is the first page of a search, or as much of it as fits in the time for an answer.
func search(ctx context.Context, st Store, scope server.Scope, q server.SearchQuery) (out server.Hits, err error) {
	for limit := q.Limit; ; {
		hits, err := st.Search(ctx, scope, q)
		if err != nil {
			return out, err
		}
		out.List, out.Next = append(out.List, hits.List...), hits.Next
		if !hits.More || len(out.List) >= limit {
			return out, nil
		}
		q.After, q.Limit = hits.Next, limit-len(out.List)
	}
}

// needles are the parts of a search text that must all be found, folded as a search folds them.
func needles(text string) []string {
	folded := fold(text)
	if strings.HasPrefix(folded, `"`) {
		return []string{strings.Trim(folded, `" `)}
	}
	return strings.Fields(folded)
}

func fold(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }

// reader reads episodes.
type reader struct {
	st    Store
	scope server.Scope
	words []string
	left  int // bytes that may still be read
}

// episodes makes episodes of hits. Occurrences within the episode of an earlier one belong to that.
func (r *reader) episodes(ctx context.Context, hits []server.Hit, limit int) (out []Episode, err error) {
	streams := map[int64][]server.Hit{}
	var order []int64 // of streams, by their newest hit
	for _, h := range hits {
		if streams[h.Session.ID] == nil {
			order = append(order, h.Session.ID)
		}
		streams[h.Session.ID] = append(streams[h.Session.ID], h)
	}
	for _, id := range order {
		list := streams[id]
		slices.SortFunc(list, func(a, b server.Hit) int { return cmp.Compare(a.Line, b.Line) })
		var found []Episode
		for _, h := range list {
			if n := len(found); n > 0 && h.Line <= found[n-1].end || r.left <= 0 {
				continue
			}
			e, err := r.episode(ctx, h)
			if errors.Is(err, server.ErrNotFound) {
				break // forgotten meanwhile
			}
			if err != nil {
				return nil, err
			}
			found = append(found, e)
		}
		out = append(out, found...)
		if len(out) >= 2*limit {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b Episode) int { return b.Time.Compare(a.Time) })
	return out[:min(len(out), limit)], nil
}

// errEnough ends the reading of an episode.
var errEnough = errors.New("enough")

// episode reads from some lines before an occurrence until the error is fixed.
func (r *reader) episode(ctx context.Context, h server.Hit) (e Episode, err error) {
	snap, err := r.st.View(ctx, r.scope, server.Ref{Stream: h.Session.ID})
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	view, err := server.NewestView(snap)
	if err != nil {
		return e, err
	}
	s := scan{Episode: Episode{Hit: h, end: h.Line}, words: r.words, calls: map[string]*Step{}}
	budget := min(fixBytes, r.left)
	for _, span := range view.Between(max(0, h.Line-fixBefore), view.Total) {
		err := snap.Lines(ctx, span, func(l server.Line) error {
			if budget -= len(l.Raw); budget < 0 && l.Index > h.Line {
				s.Cut = true
				return errEnough
			}
			return s.line(l)
		})
		r.left -= min(fixBytes, r.left) - max(budget, 0)
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return e, err
		}
	}
	return s.done(), nil
}

// scan is an episode that is being read.
type scan struct {
	Episode
	words  []string
	calls  map[string]*Step // by tool use id
	steps  []*Step
	likely *Step
	after  bool // something happened behind the newest occurrence
}

func (s *scan) line(l server.Line) error {
	if l.Kind == server.Oversize {
		return nil
	}
	objects := [][]byte{l.Raw}
	if l.Kind == server.Opaque {
		objects = transcript.Recover(l.Raw)
	}
	for _, object := range objects {
		r := transcript.Parse(object)
		if r.Message == nil {
			continue
		}
		for _, b := range r.Message.Blocks() {
			switch b.Kind {
			case transcript.ToolUseBlock:
				s.called(l.Index, &r, &b)
			case transcript.ToolResultBlock:
				if s.answered(l.Index, &b) {
					return errEnough
				}
			}
		}
	}
	return nil
}

// called remembers a call; behind the error, an edit or a command is a step.
func (s *scan) called(line int64, r *transcript.Record, b *transcript.Block) {
	c := &Step{Line: line, At: r.Time, Kind: b.ToolName, Text: transcript.ToolSummary(b.ToolName, b.Input, maxStep)}
	path := transcript.ToolPath(b.ToolName, b.Input)
	switch {
	case b.ToolName == "Bash" || b.ToolName == "PowerShell":
		c.Kind = server.CommandKind
		c.exact = strings.TrimSpace(transcript.StringField(b.Input, "command"))
		c.Text = transcript.OneLine(c.exact, maxStep)
	case path != "" && b.ToolName != "Read" && b.ToolName != "NotebookRead":
		c.Kind, c.Text, c.exact = server.EditKind, path, b.ToolName+" "+path
	default:
		c.exact = b.ToolName + " " + c.Text
	}
	s.calls[b.ToolID] = c
	if line > s.Line && (c.Kind == server.EditKind || c.Kind == server.CommandKind) {
		s.steps = append(s.steps, c)
	}
}

// answered takes a result, and reports whether it shows that the error is fixed.
func (s *scan) answered(line int64, b *transcript.Block) (fixed bool) {
	c := s.calls[b.ToolID]
	if c != nil {
		c.Failed, c.line = b.Error, line
	}
	if line < s.Line {
		return false
	}
	if s.occurs(b) {
		if line > s.Line {
			s.Again++
		} else {
			s.Call = c
		}
		s.likely, s.after, s.end = nil, false, line
		return false
	}
	if line == s.Line {
		return false
	}
	s.after = true
	if c == nil || s.Call == nil || b.Error || c.Line < s.Line {
		return false
	}
	if c.exact == s.Call.exact && c.Kind == s.Call.Kind {
		s.Success, s.end = c, line
		return true
	}
	command := c.Kind == server.CommandKind && s.Call.Kind == server.CommandKind
	if s.likely == nil && command && program(c.exact) == program(s.Call.exact) {
		s.likely, s.end = c, line
	}
	return false
}

// occurs reports whether a result has the error.
func (s *scan) occurs(b *transcript.Block) bool {
	text := fold(b.Output())
	for _, w := range s.words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// program is the beginning of a command that says what it does: a program and its first argument, without the change
// of folder that comes first.
func program(command string) string {
	if rest, ok := strings.CutPrefix(command, "cd "); ok {
		if _, then, ok := strings.Cut(rest, "&&"); ok {
			command = then
		}
	}
	words := strings.Fields(command)
	return strings.Join(words[:min(len(words), 2)], " ")
}

// done is the episode.
func (s *scan) done() Episode {
	e := s.Episode
	switch {
	case s.Success != nil:
		e.Outcome = Fixed
	case s.likely != nil:
		e.Outcome, e.Success = LikelyFixed, s.likely
	case s.after:
		e.Outcome = Gone
	default:
		e.Outcome = Open
	}
	for _, c := range s.steps {
		if e.Success == nil || c.Line <= e.Success.Line {
			e.Steps = append(e.Steps, *c)
		}
	}
	if len(e.Steps) > maxSteps {
		e.Steps = e.Steps[len(e.Steps)-maxSteps:]
	}
	return e
}
