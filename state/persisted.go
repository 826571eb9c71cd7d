package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
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

// Dependents keep rows in the file that depend on files, destinations and outbox rows: state/projection. Each method
// runs inside the transaction that causes it, so that a crash cannot leave a row whose reason is gone. An error rolls
// that transaction back.
type Dependents interface {
	kv.Memory
	// FileForgotten removes everything kept of a file, and of its session. session is "" while it is not decided.
	FileForgotten(t *Tx, id tail.FileID, session string) error
	// RowsDropped runs when all outbox rows of a file are removed unsent.
	RowsDropped(t *Tx, id tail.FileID) error
	// DestinationDropped runs when all outbox rows of a destination are removed unsent.
	DestinationDropped(t *Tx, dest uint32) error
	// BlobNotSent runs when a blob leaves the outbox unsent, because its file was not what was queued.
	BlobNotSent(t *Tx, dest uint32, id tail.FileID, blob *outbox.BlobRef) error
}

// noDependents stands in where Options name none.
type noDependents struct{ kv.Memory }

func (noDependents) FileForgotten(*Tx, tail.FileID, string) error { return nil }
func (noDependents) RowsDropped(*Tx, tail.FileID) error           { return nil }
func (noDependents) DestinationDropped(*Tx, uint32) error         { return nil }
func (noDependents) BlobNotSent(*Tx, uint32, tail.FileID, *outbox.BlobRef) error {
	return nil
}

// DestinationNumber returns the number that stands for a destination in keys; false: it has none yet.
func (db *DB) DestinationNumber(url string) (uint32, bool) { return db.index.destID(url) }

// EachFile calls fn for every file, in a transaction that the caller runs.
func (db *DB) EachFile(tx *kv.Snapshot, fn func(tail.Tracked, Routing) error) error {
	return eachFileRow(tx, func(r *fileRow) error {
		r.routing.Dest = db.index.destURL(r.dest)
		return fn(r.tracked, r.routing)
	})
}

// File reads a file's routing, and the number of its destination, which is 0 while its lines go nowhere. found is false
// when the file is not known.
func (t *Tx) File(id tail.FileID) (r Routing, dest uint32, found bool, err error) {
	row, found, err := t.file(id)
	return row.routing, row.dest, found, err
}

// Queue adds a batch to the end of a file's rows for a destination, and sets its Seq.
func (t *Tx) Queue(dest uint32, id tail.FileID, b *outbox.Batch) error {
	return t.putBatch(dest, uint64(id), b)
}
