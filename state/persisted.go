package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// ErrUnreadable is returned when what the state keeps under a name is not the JSON of the value asked for.
var ErrUnreadable = errors.New("unreadable value in the state")

// Persisted is a value that the state keeps as JSON under a name. Values are replaced and never changed in place, so
// that Get does not wait for a write. It is safe for concurrent use.
type Persisted[T any] struct {
	db   *DB
	name string

	changing sync.Mutex // held while a new value is written
	value    atomic.Pointer[T]
}

// LoadPersisted reads the value under a name; the zero value when there is none. With ErrUnreadable it still returns a
// Persisted, which has the zero value: the owner may go on with it when the value can be made again.
func LoadPersisted[T any](ctx context.Context, db *DB, name string) (*Persisted[T], error) {
	p := &Persisted[T]{db: db, name: name}
	p.value.Store(new(T))
	text, err := db.Meta(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return p, nil
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return p, fmt.Errorf("read %s: %w: %w", name, ErrUnreadable, err)
	}
	p.value.Store(&v)
	return p, nil
}

// Get returns the value. It is shared: the caller does not change what it points to.
func (p *Persisted[T]) Get() T { return *p.value.Load() }

// Change replaces the value. f gets the value and returns its successor, built from copies, or reports that nothing
// changes. Calls come one after another. The new value is durable before Get returns it; after an error the old one
// stays.
func (p *Persisted[T]) Change(ctx context.Context, f func(old T) (next T, changed bool)) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	next, changed := f(p.Get())
	if !changed {
		return nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("store %s: %w", p.name, err)
	}
	if string(text) == "null" {
		text = nil // nothing is kept of a nil value
	}
	if err := p.db.PutMeta(ctx, p.name, text); err != nil {
		return err
	}
	p.value.Store(&next)
	return nil
}
