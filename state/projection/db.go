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
	"errors"
	"fmt"
	"strings"
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

// Place is how far a transcript was folded: after the last line that was, of a generation. The zero value is the
// beginning.
type Place struct {
	Offset, Line int64 // bytes, lines
	Generation   uint32
}

// PlaceOf returns the position of a cursor.
func PlaceOf(c tail.Cursor) Place {
	return Place{Offset: c.Offset, Line: c.Line, Generation: c.Generation}
}

// Projection is what is kept of a transcript. Fold, Log and Marks are encodings of the caller; they are compressed
// here. When they take too many bytes, the sessions that were written longest ago lose theirs. Such a transcript is
// folded again from its beginning, and lines before Place are known to have had their effects.
type Projection struct {
	Place   Place
	Cleared int64 // messages of lines below are not kept
	// EffectsThrough: lines below had their effects in an earlier fold, which may have come further than Place.
	EffectsThrough   int64
	Fold, Log, Marks []byte
}

// Derivation is the one durable move of a projection: the position advances, and the results of the lines up to it are
// stored and queued, together or not at all. So a crash neither loses a checkpoint nor queues one twice.
type Derivation struct {
	// File is the transcript. 0: none; then only Notices, Shown and Documents are stored.
	File         tail.FileID
	Prev         Place       // must equal the stored position, else all of it is left out (tail.ErrStale)
	Projection   *Projection // nil: the position stays, and Prev does not matter
	Checkpoints  []Checkpoint
	Notices      []Notice
	Shown        []Notice // notices that the session's transcript shows: they are removed
	Documents    []Document
	LinkRequests []LinkRequest
	// Batches are queued for the server that the file's lines go to, and get their Seq. They are left out when the
	// file's lines go nowhere.
	Batches []outbox.Batch
}

func (d *Derivation) size() (n int64) {
	if u := d.Projection; u != nil {
		n += int64(len(u.Fold) + len(u.Log) + len(u.Marks))
	}
	for i := range d.Batches {
		n += int64(len(d.Batches[i].Frame))
	}
	return n
}

// Commit makes derivations durable, in one transaction with those of other callers. It returns one error for each: nil,
// tail.ErrStale for one that was left out because the stored position is not its Prev, or state.ErrUnknownFile for one
// whose file was forgotten. An error for all means that nothing happened.
func (db *DB) Commit(ctx context.Context, all []Derivation) ([]error, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var size int64
	packed := make([]foldRow, len(all))
	for i := range all {
		size += all[i].size()
		if u := all[i].Projection; u != nil {
			var err error
			if packed[i], err = db.pack(u); err != nil {
				return nil, err
			}
		}
	}
	errs := make([]error, len(all))
	err := db.update(ctx, size, func(t *tx) error {
		for i := range all {
			errs[i] = t.derive(&all[i], &packed[i])
			if errs[i] != nil && !errors.Is(errs[i], tail.ErrStale) && !errors.Is(errs[i], state.ErrUnknownFile) {
				return errs[i]
			}
		}
		return t.boundFolds(all)
	})
	if err != nil {
		return nil, fmt.Errorf("store projections: %w", err)
	}
	return errs, nil
}

// derive stores one derivation. tail.ErrStale and state.ErrUnknownFile: nothing of it was written.
func (t *tx) derive(d *Derivation, b *foldRow) error {
	var dest uint32
	if d.File != 0 {
		_, to, found, err := t.File(d.File)
		if err != nil {
			return err
		}
		if !found {
			return state.ErrUnknownFile
		}
		dest = to
	}
	if d.Projection != nil {
		if err := t.putProjection(d, b); err != nil {
			return err
		}
	}
	for _, put := range []func(*Derivation) error{t.putCheckpoints, t.putNotices, t.putDocuments, t.putLinkRequests} {
		if err := put(d); err != nil {
			return err
		}
	}
	if dest == 0 {
		return nil
	}
	for i := range d.Batches {
		if err := t.Queue(dest, d.File, &d.Batches[i]); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes all that is kept of some files and their sessions. What of it waits in the outbox is removed by
// state.Outbox.Drop.
func (db *DB) Drop(ctx context.Context, ids []tail.FileID) error {
	err := db.update(ctx, 0, func(t *tx) error {
		for _, id := range ids {
			r, _, _, err := t.File(id)
			if err != nil {
				return err
			}
			if err := t.drop(id, r.Stream.SessionID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop projections: %w", err)
	}
	return nil
}

// drop removes what is kept of a file, and of the session that it is; session is "" while that is not decided.
func (t *tx) drop(id tail.FileID, session string) error {
	if err := t.dropProjection(id); err != nil {
		return err
	}
	for _, drop := range []func(tail.FileID, string) error{t.dropCheckpoints, t.dropNotices, t.dropDocuments} {
		if err := drop(id, session); err != nil {
			return err
		}
	}
	return nil
}

// DocumentBlobs begins the names of blobs that are contents of documents. The document's path follows.
const DocumentBlobs = "documents/"

// MissedDocument is the version of a document whose content could not be sent, because its file was not what was
// queued.
type MissedDocument struct{ Session, Path, SHA256 string }

// missDocument marks the newest version of a document as not queued, when its blob leaves the outbox unsent. Otherwise
// the document would count as sent for ever, also when its file is back.
func (t *tx) missDocument(dest uint32, id tail.FileID, ref *outbox.BlobRef) error {
	path, is := strings.CutPrefix(ref.Name, DocumentBlobs)
	if !is {
		return nil
	}
	r, _, found, err := t.File(id)
	if err != nil || !found {
		return err
	}
	d := Document{Session: r.Stream.SessionID, Path: path}
	key := documentKey(d.Session, d.Path)
	v := t.Bucket(state.BucketDocuments).Get(key)
	if v == nil {
		return nil
	}
	if err := unsealJSON(key, v, &d); err != nil {
		return err
	}
	if !d.Linked || d.SHA256 != ref.SHA256 || d.Dest == "" {
		return nil
	}
	if to, err := t.Destination(d.Dest); err != nil || to != dest {
		return err
	}
	d.Dest = ""
	if v, err = kv.SealJSON(documentVersion, key, &d); err != nil {
		return err
	}
	t.delta.missed = append(t.delta.missed, MissedDocument{d.Session, d.Path, d.SHA256})
	return t.putDocumentRow(key, v)
}

// memory is what is kept of the rows in memory: data that is needed at every prompt must not be read from disk. It
// implements state.Dependents.
type memory struct {
	db *DB

	mu      sync.Mutex          // guards all below; a leaf
	folds   int64               // bytes of the bucket folds
	notices map[string][]Notice // by session, oldest first
	budgets *Budgets            // nil: none; immutable once set
}

var _ state.Dependents = (*memory)(nil)

// Load implements kv.Memory.
func (m *memory) Load(tx *kv.Snapshot) error {
	fresh := memory{notices: map[string][]Notice{}}
	for _, read := range []func(*kv.Snapshot) error{
		fresh.readSessions, readDocuments, fresh.readNotices, fresh.readBudgets,
	} {
		if err := read(tx); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.folds, m.notices, m.budgets = fresh.folds, fresh.notices, fresh.budgets
	return nil
}

// Begin implements kv.Memory.
func (m *memory) Begin(*kv.Tx) kv.Changes { return &delta{memory: m} }

// delta is what one transaction changes in memory once the disk has it.
type delta struct {
	memory *memory

	folds   int64
	notices []noticeChange
	budgets []budgetChange
	missed  []MissedDocument
}

// Finish implements kv.Changes.
func (d *delta) Finish() error { return nil }

// Apply implements kv.Changes.
func (d *delta) Apply() {
	d.memory.apply(d)
	for _, missed := range d.missed {
		if report := d.memory.db.Missed; report != nil {
			report(missed)
		}
	}
}

func (m *memory) apply(d *delta) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.folds += d.folds
	m.applyNotices(d.notices)
	m.applyBudgets(d.budgets)
}

func (m *memory) foldBytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.folds
}
