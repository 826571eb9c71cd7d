package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// forgottenWhy is why a forgotten session's transcripts are not sent.
const forgottenWhy = "forgotten"

// grave is what is left of a session that its user had forgotten: a note not to send it again.
type grave struct {
	Session string    `json:"session"`
	At      time.Time `json:"at"`
	Owed    []string  `json:"owed,omitempty"` // destinations that are still to be told
	// Again is when they are all told once more: what was in flight may have arrived behind the first word.
	Again *time.Time `json:"again,omitempty"`
	Dests []string   `json:"dests,omitempty"` // with Again: those
}

// graves are the sessions that were forgotten. They are kept in the state; after its loss the servers, which keep their
// own, say so.
type graves struct {
	db *state.DB

	mu   sync.Mutex
	list map[string]*grave // by session; guarded by mu
}

// keptGraves is their name in the state.
const keptGraves = "forgotten"

func loadGraves(ctx context.Context, db *state.DB) (*graves, error) {
	g := &graves{db: db, list: map[string]*grave{}}
	text, err := db.Remembered(ctx, keptGraves)
	if err != nil || text == nil {
		return g, err
	}
	var list []*grave
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read what was forgotten: %w", err)
	}
	for _, x := range list {
		g.list[x.Session] = x
	}
	return g, nil
}

// change changes the list durably.
func (g *graves) change(ctx context.Context, f func(list map[string]*grave)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := make(map[string]*grave, len(g.list)+1)
	for k, v := range g.list {
		x := *v
		x.Owed, x.Dests = slices.Clone(v.Owed), slices.Clone(v.Dests)
		next[k] = &x
	}
	f(next)
	list := []*grave{}
	for _, x := range next {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *grave) int { return strings.Compare(a.Session, b.Session) })
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("write what was forgotten: %w", err)
	}
	if err := g.db.Remember(ctx, keptGraves, text); err != nil {
		return err
	}
	g.list = next
	return nil
}

// has says whether a stream is of a session that was forgotten.
func (g *graves) has(stream string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) == 0 {
		return false
	}
	for _, name := range transcript.ForgetNames(stream) {
		if g.list[name] != nil {
			return true
		}
	}
	return false
}

// due copies the graves of which someone is to be told now.
func (g *graves) due(now time.Time) (list []grave) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.list {
		if len(x.Owed) > 0 || x.Again != nil && !now.Before(*x.Again) {
			list = append(list, *x)
		}
	}
	return list
}

// isOf says whether a stream is of one of some sessions.
func isOf(stream string, sessions map[string]bool) bool {
	return slices.ContainsFunc(transcript.ForgetNames(stream), func(name string) bool { return sessions[name] })
}

// streamOf is a file's stream, also before it is given its name.
func (d *desk) streamOf(f *state.Facts, file tail.File) string {
	switch {
	case f.Stream.SessionID != "":
		return f.Stream.SessionID
	case file.Kind == tail.History:
		return transcript.HistoryName(d.machine, file.Root)
	}
	return transcript.StreamName(file.Name, f.Stream.Parent, file.Copy)
}
