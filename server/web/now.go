package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript"
)

const (
	// recent is how far back a session may have been active to stand on the wall, and mostCards how many stand there.
	recent    = 12 * time.Hour
	mostCards = 12
	// ended is how long a session stays there after Claude Code has finished.
	ended = 30 * time.Minute
	// tailLines are how many of a session's last lines say how it stands, and tailBytes how much of them is read.
	tailLines = 24
	tailBytes = 256 << 10
)

// card is a session on the wall.
type card struct {
	row
	liveState
}

// wall is the sessions that run now, on all machines.
type wall struct {
	page.Layout
	Now []card
}

// running is GET /now: the wall.
func (p *homePages) running(w http.ResponseWriter, r *http.Request, who server.Login) error {
	x := wall{Layout: p.site.Layout(r, who, "Running now", "sessions")}
	var err error
	if x.Now, err = p.cards(r.Context(), server.ScopeOf(who.User)); err != nil {
		return err
	}
	p.site.Render(w, http.StatusOK, "now.html", x)
	return nil
}

// cards returns the sessions that run, wait or have just ended. Those that need a person come first.
func (p *homePages) cards(ctx context.Context, scope server.Scope) ([]card, error) {
	found, err := p.findShort(ctx, scope, server.SessionQuery{Since: p.now().Add(-recent),
		Page: server.Page{Limit: mostCards, Recent: true}})
	if err != nil {
		return nil, err
	}
	var out []card
	for _, s := range p.rows(found.List, nil, nil, nil) {
		records, err := p.tail(ctx, scope, s.Session)
		if errors.Is(err, server.ErrNotFound) {
			continue // forgotten meanwhile
		}
		if err != nil {
			return nil, err
		}
		c := card{s, liveStateOf(records, s.Active, p.now())}
		if quiet := p.now().Sub(s.Active); !c.Needs && quiet > ended || c.State == "" {
			continue
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b card) int { return cmp.Compare(rank(a), rank(b)) })
	return out, nil
}

func rank(c card) int {
	if c.Needs {
		return 0
	}
	return 1
}

// came says of the sessions of a list what came of them.
func (p *homePages) came(ctx context.Context, scope server.Scope, groups []group) error {
	for _, g := range groups {
		for i := range g.Sessions {
			s := &g.Sessions[i]
			key := ending{s.ID, s.Lines, s.Active}
			if s.Came = p.endings.of(key); s.Came != "" {
				continue
			}
			records, err := p.tail(ctx, scope, s.Session)
			if errors.Is(err, server.ErrNotFound) {
				continue // forgotten meanwhile
			}
			if err != nil {
				return err
			}
			s.Came, _, _ = strings.Cut(liveStateOf(records, s.Active, p.now()).Words, ";")
			if p.now().Sub(s.Active) > recent {
				p.endings.add(key, s.Came)
			}
		}
	}
	return nil
}

// ending names the end of a session that is over.
type ending struct {
	stream, lines int64
	active        time.Time
}

// endings remembers how sessions ended: to look costs as much as all else of a list. Safe for concurrent use.
type endings struct {
	mu    sync.Mutex
	words map[ending]string
}

// maxEndings is how many are remembered.
const maxEndings = 10_000

func (e *endings) of(key ending) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.words[key]
}

func (e *endings) add(key ending, words string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.words == nil || len(e.words) >= maxEndings {
		e.words = map[ending]string{}
	}
	e.words[key] = words
}

// tail returns the last records of a session, in order.
func (p *homePages) tail(ctx context.Context, scope server.Scope, x server.Session) (out []transcript.Record,
	err error) {
	open := func(ctx context.Context, scope server.Scope, _ server.Ref) (server.Snapshot, error) {
		return p.store.View(ctx, scope, server.Ref{Stream: x.ID}) // its number is known: nothing has to be looked up
	}
	err = openView(ctx, open, scope, thread.StreamOf(x), func(snap server.Snapshot, view server.View) (err error) {
		out, err = lastRecords(ctx, snap, view)
		return err
	})
	return out, err
}

// lastRecords returns the last records of a view, in order.
func lastRecords(ctx context.Context, snap server.Snapshot, view server.View) (out []transcript.Record, err error) {
	left := tailBytes
	for to := view.Total; to > max(0, view.Total-tailLines) && left > 0; to-- {
		err := thread.EachHead(ctx, snap, view.Between(to-1, to), func(l server.Line, _ int64) error {
			if left -= len(l.Raw); left < 0 {
				return nil // too long to be looked into for a few words
			}
			l.Raw = slices.Clone(l.Raw)
			out = append(thread.Records(l), out...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
