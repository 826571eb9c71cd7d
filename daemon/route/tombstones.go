package route

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/transcript"
)

// Forgotten is why the transcripts of a forgotten session are not sent.
const Forgotten = "forgotten"

// Tombstone records that a user had a session forgotten, so that it is never sent again.
type Tombstone struct {
	Session string    `json:"session"`
	At      time.Time `json:"at"`
	Pending []string  `json:"pending,omitempty"` // destinations that have not been asked yet
	// Again is when all of Dests are asked once more, because a request in flight may have arrived after the first time.
	Again *time.Time `json:"again,omitempty"`
	Dests []string   `json:"dests,omitempty"`
}

// Tombstones are the forgotten sessions. They are kept in the state. If that is lost, the servers, which keep their
// own, report them again. It is safe for concurrent use.
type Tombstones struct {
	kept *state.Persisted[tombstones]
}

// tombstones are by session. In JSON they are a list.
type tombstones map[string]Tombstone

// MarshalJSON writes a list in the order of the sessions.
func (t tombstones) MarshalJSON() ([]byte, error) {
	list := []Tombstone{}
	for _, session := range slices.Sorted(maps.Keys(t)) {
		list = append(list, t[session])
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads a list.
func (t *tombstones) UnmarshalJSON(text []byte) error {
	var list []Tombstone
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*t = tombstones{}
	for _, x := range list {
		(*t)[x.Session] = x
	}
	return nil
}

func loadTombstones(ctx context.Context, db *state.DB) (*Tombstones, error) {
	kept, err := state.LoadPersisted[tombstones](ctx, db, "forgotten")
	if err != nil {
		return nil, err
	}
	return &Tombstones{kept: kept}, nil
}

// has reports whether a stream is of a session that was forgotten.
func (t *Tombstones) has(stream string) bool {
	all := t.kept.Get()
	if len(all) == 0 {
		return false
	}
	return slices.ContainsFunc(transcript.ForgetNames(stream), func(name string) bool {
		_, found := all[name]
		return found
	})
}

// Pending returns the destinations that have not been asked to forget a session yet.
func (t *Tombstones) Pending(session string) []string { return t.kept.Get()[session].Pending }

// Due returns the tombstones with a pending destination, and those whose Again has come.
func (t *Tombstones) Due(now time.Time) (list []Tombstone) {
	for _, x := range t.kept.Get() {
		if len(x.Pending) > 0 || x.AgainDue(now) {
			list = append(list, x)
		}
	}
	return list
}

// AgainDue reports whether it is time to ask all destinations once more.
func (x *Tombstone) AgainDue(now time.Time) bool { return x.Again != nil && !now.Before(*x.Again) }

// Put adds a tombstone, or replaces that of the same session. The caller must not change its slices any more.
func (t *Tombstones) Put(ctx context.Context, x Tombstone) error {
	return t.kept.Change(ctx, func(old tombstones) (tombstones, bool) {
		next := maps.Clone(old)
		if next == nil {
			next = tombstones{}
		}
		next[x.Session] = x
		return next, true
	})
}

// Remove removes the tombstone of a session.
func (t *Tombstones) Remove(ctx context.Context, session string) error {
	return t.kept.Change(ctx, func(old tombstones) (tombstones, bool) {
		next := maps.Clone(old)
		delete(next, session)
		return next, len(next) < len(old)
	})
}

// Asked removes destinations from the pending ones of a session.
func (t *Tombstones) Asked(ctx context.Context, session string, dests []string) error {
	return t.update(ctx, session, func(x *Tombstone) {
		x.Pending = slices.DeleteFunc(slices.Clone(x.Pending), func(dest string) bool { return slices.Contains(dests, dest) })
	})
}

// AskAgain makes all destinations of a session pending once more, for the last time.
func (t *Tombstones) AskAgain(ctx context.Context, session string) error {
	return t.update(ctx, session, func(x *Tombstone) {
		x.Pending, x.Dests, x.Again = x.Dests, nil, nil
	})
}

// update changes the tombstone of a session, if there is one. f must not change the elements of slices.
func (t *Tombstones) update(ctx context.Context, session string, f func(x *Tombstone)) error {
	return t.kept.Change(ctx, func(old tombstones) (tombstones, bool) {
		x, found := old[session]
		if !found {
			return nil, false
		}
		f(&x)
		next := maps.Clone(old)
		next[session] = x
		return next, true
	})
}
