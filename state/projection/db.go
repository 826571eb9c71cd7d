// Package projection keeps what was derived from transcripts: how far each was folded, the fold itself, checkpoints
// with token budgets, notices for sessions, linked documents and attachments. It keeps them in the file of package
// state, and queues what has to be sent in the same transaction (DB.Commit), so that a result and its request exist
// together or not at all.
//
// It knows rows and their limits. It does not know how a transcript is folded, what a checkpoint means, or who sends
// what is queued.
package projection

import (
	"context"
	"sync"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// foldCap limits the bytes of folds as they are stored. It is not part of state.Options.Cap, which is about what must
// not be lost: folds can be made again from the transcripts.
const foldCap = 64 << 20

// DB is one store for each kind of row, and the state that they are in. Safe for concurrent use.
type DB struct {
	State         *state.DB
	Sessions      *Sessions
	Checkpoints   *Checkpoints
	Notices       *Notices
	Documents     *Documents
	Introductions *Introductions
	Attachments   *Attachments
	// Missed is called, with the state locked for writing, for a document whose newest version left the outbox without
	// having been sent: it counts as not queued from then on. It must not block or call the DB. Set before state's Run.
	Missed func(MissedDocument)

	memory  *memory
	foldCap int64
	packers sync.Pool // *flate.Writer
}

// Open opens the state and the projections in it. It sets opt.Dependents. The errors are those of state.Open. The
// caller closes DB.State.
func Open(ctx context.Context, opt state.Options) (*DB, error) {
	db := newDB()
	if err := db.open(ctx, opt); err != nil {
		return nil, err
	}
	return db, nil
}

func newDB() *DB {
	db := &DB{foldCap: foldCap}
	db.memory = &memory{db: db, notices: map[string][]Notice{}}
	db.Sessions, db.Checkpoints, db.Notices = &Sessions{db}, &Checkpoints{db}, &Notices{db}
	db.Documents, db.Introductions, db.Attachments = &Documents{db}, &Introductions{db}, &Attachments{db}
	return db
}

func (db *DB) open(ctx context.Context, opt state.Options) (err error) {
	opt.Dependents = db.memory
	db.State, err = state.Open(ctx, opt)
	return err
}

// update runs apply in a write transaction, as state.DB.Transact does.
func (db *DB) update(ctx context.Context, size int64, apply func(*tx) error) error {
	return db.State.Transact(ctx, size, func(t *state.Tx) error { return apply(db.memory.tx(t)) })
}

// tx is a write transaction in progress.
type tx struct {
	*state.Tx
	delta *delta // what it will change in memory

	projections, folds *kv.Bucket
}

func (m *memory) tx(t *state.Tx) *tx {
	return &tx{
		Tx: t, delta: t.Changes(m).(*delta),
		projections: t.Bucket(state.BucketProjections), folds: t.Bucket(state.BucketFolds),
	}
}

// FileForgotten implements state.Dependents.
func (m *memory) FileForgotten(s *state.Tx, id tail.FileID, session string) error {
	t := m.tx(s)
	if err := t.dropAttachments(id); err != nil {
		return err
	}
	return t.drop(id, session)
}

// RowsDropped implements state.Dependents. What was dropped unsent does not count as queued any more.
func (m *memory) RowsDropped(s *state.Tx, id tail.FileID) error { return m.tx(s).dropAttachments(id) }

// DestinationDropped implements state.Dependents.
func (m *memory) DestinationDropped(s *state.Tx, dest uint32) error {
	return m.tx(s).dropAttachmentRows(attachmentKey(dest))
}

// BlobNotSent implements state.Dependents. The attachment or document is queued again should its file be there after
// all.
func (m *memory) BlobNotSent(s *state.Tx, dest uint32, id tail.FileID, blob *outbox.BlobRef) error {
	t := m.tx(s)
	if err := t.missDocument(dest, id, blob); err != nil {
		return err
	}
	return t.missAttachment(dest, id, blob)
}
