// Package thread builds the items of a conversation from stored lines: prompts, answers, tool calls with their
// results, compactions and rewinds, and the same as Markdown. It reads through a server.Snapshot, and does not know
// who reads, how a page looks or where a line is stored.
package thread

import (
	"context"
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript/session"
)

// Stream names what a page shows: a session of a machine, and where that is not the newest, an epoch and a generation.
type Stream struct {
	ID         string
	User       int64   // whose it is; 0: the reader's own, else the only one
	Machine    *string // nil: the one heard last
	Epoch      string
	Generation int64  // -1: the newest
	Short      string // the beginning of a session's id that names it to the reader, without machine and user; or ""
}

// UserParam is the parameter of an address that has a Stream's User.
const UserParam = "owner"

func StreamOf(x server.Session) Stream {
	return Stream{ID: x.SessionID, User: x.Owner, Machine: &x.Machine, Generation: -1, Short: x.Short}
}

// Pin lets s name no other stream than that of x. A short name stays.
func (s *Stream) Pin(x server.Session) { s.ID, s.User, s.Machine = x.SessionID, x.Owner, &x.Machine }

// Full is s without its short name: what names one stream whatever is stored later.
func (s Stream) Full() Stream {
	s.Short = ""
	return s
}

// Agent returns an agent of the session of s, or of the one that the agent of s belongs to.
func (s Stream) Agent(id string) Stream {
	of := s.Owner()
	of.ID += "/agent-" + id
	return of
}

func (s Stream) Ref() server.Ref {
	return server.Ref{SessionID: s.ID, Prefix: true, Owner: s.User, Machine: s.Machine, Epoch: s.Epoch}
}

// Path returns the address, below the base, of the session's page or of what lies below that. more is names and values
// of its query; "" values are left out. The id is one path element, whatever is in it.
func (s Stream) Path(below string, more ...string) string {
	q := url.Values{}
	id := s.ID
	if s.Short != "" {
		_, agent, isAgent := strings.Cut(s.ID, "/")
		if id = s.Short; isAgent {
			id += "/" + agent
		}
		s.User, s.Machine = 0, nil
	}
	if s.User != 0 {
		q.Set(UserParam, strconv.FormatInt(s.User, 10))
	}
	if s.Machine != nil {
		q.Set("machine", *s.Machine)
	}
	if s.Epoch != "" {
		q.Set("epoch", s.Epoch)
	}
	if s.Generation >= 0 {
		q.Set("generation", strconv.FormatInt(s.Generation, 10))
	}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	p := "/sessions/" + url.PathEscape(id) + below
	if len(q) > 0 {
		p += "?" + q.Encode()
	}
	return p
}

// LinePath returns the permalink of a line.
func (s Stream) LinePath(n int64) string { return s.Path("/L/" + strconv.FormatInt(n, 10)) }

// DocumentPath returns the page of a linked document, below that of its session. more is as in path.
func (s Stream) DocumentPath(name string, more ...string) string {
	return s.Path("/document", append([]string{"path", name}, more...)...)
}

// Owner returns the stream that a session's files belong to: an agent's are its session's.
func (s Stream) Owner() Stream {
	id, _, _ := strings.Cut(s.ID, "/")
	return Stream{ID: id, User: s.User, Machine: s.Machine, Generation: -1, Short: s.Short}
}

// FileName returns a session's id as far as it can stand in a file's name.
func FileName(id string) string {
	out := []byte(id)
	for i, c := range out {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			out[i] = '-'
		}
	}
	return string(out[:min(len(out), 80)])
}

// Story is what a conversation went through that no line says by itself. It depends on all lines, not only on those of
// a page. The zero Story knows of nothing.
type Story struct {
	rewinds []session.Rewind // the newest ones, oldest first
	clears  []int64          // lines before which the context was cleared
}

// What is derived need not be read to know the story of a view. How much else is read at most:
const (
	lagBytes = 2 << 20  // of the newest view: what is not derived yet; until it is, the page says so
	oldBytes = 64 << 20 // of an older one, which has no fold
	// blockBytes is what a block of a message counts besides.
	blockBytes = 256
)

// ReadStory returns the story of a view, from the fold of its stream and the lines behind it.
func ReadStory(ctx context.Context, snap server.Snapshot, view server.View) (Story, error) {
	f, at, err := derive.FoldOf(ctx, snap)
	if err != nil {
		return Story{}, err
	}
	most := lagBytes
	if newest := snap.Generations(); len(newest) > 0 && view.Generation.Number != newest[len(newest)-1].Number {
		f, at, most = &session.Fold{}, server.Position{}, oldBytes
	} else if at.Generation != view.Generation.Number {
		f, at = &session.Fold{}, server.Position{}
	}
	return storyOf(ctx, snap, view.Between(at.Line, view.Total), f, most)
}

// wholeStory reads all of a view.
func wholeStory(ctx context.Context, snap server.Snapshot, view server.View) (Story, error) {
	return storyOf(ctx, snap, view.Between(0, view.Total), &session.Fold{}, math.MaxInt)
}

// storyOf continues a fold over lines.
func storyOf(ctx context.Context, snap server.Snapshot, spans []server.Span, f *session.Fold,
	bytes int) (Story, error) {
	err := EachHead(ctx, snap, spans, func(l server.Line, _ int64) error {
		if bytes -= len(l.Raw); bytes < 0 {
			return errFull
		}
		for _, rec := range Records(l) {
			f.Add(l.Index, rec)
			if rec.Message != nil && bytes < math.MaxInt/2 {
				bytes -= blockBytes * len(rec.Message.RawBlocks())
			}
		}
		return nil
	})
	if notFull(err) != nil {
		return Story{}, err
	}
	return Story{f.Rewinds(), f.Clears()}, nil
}

// left reports whether a rewind took a line out of the conversation.
func (s *Story) left(line int64) bool {
	return slices.ContainsFunc(s.rewinds, func(r session.Rewind) bool { return r.Leaves(line) })
}

// before returns the rewinds that a line revealed, and whether the context was cleared before it.
func (s *Story) before(line int64) (rewinds []session.Rewind, cleared bool) {
	for _, r := range s.rewinds {
		if r.Line == line {
			rewinds = append(rewinds, r)
		}
	}
	return rewinds, slices.Contains(s.clears, line)
}

// MaxPrompts is how many prompts are listed at once.
const MaxPrompts = 1000

// Prompt is a line of an outline.
type Prompt struct {
	Line int64
	URL  string
	Time time.Time
	Kind string // of what is no prompt, as package timeline names it; ""
	Text string
	Tag  string
}

// Prompts lists what the human wrote, from line from on, at most MaxPrompts. No more of the file than one line is in
// memory at a time. more: the list ends before the file. URLs are paths below the viewer's base.
func Prompts(ctx context.Context, snap server.Snapshot, view server.View, s Stream,
	from int64) (out []Prompt, more bool, err error) {
	var fold session.Fold
	add := func(e *session.Event, beside bool) error {
		if len(out) == MaxPrompts {
			return errFull
		}
		row := Prompt{Line: e.Line, URL: s.LinePath(e.Line), Time: e.Time,
			Text: strings.Clone(page.OneLine(e.Text, 400))}
		switch {
		case e.Kind == session.ReplyEvent:
			row.Tag = "reply"
		case e.From != "":
			row.Tag = "via " + e.From
		case e.Queued && !beside:
			row.Tag = "queued"
		}
		out = append(out, row)
		return nil
	}
	spans := view.Between(max(0, from-aroundLines), view.Total)
	err = EachHead(ctx, snap, spans, func(l server.Line, _ int64) (err error) {
		for _, rec := range Records(l) {
			for _, e := range fold.Add(l.Index, rec) {
				if (e.Kind == session.PromptEvent || e.Kind == session.ReplyEvent) && e.Line >= from && err == nil {
					err = add(&e, rec.SourceID != "")
				}
			}
		}
		return err
	})
	return out, errors.Is(err, errFull), notFull(err)
}
