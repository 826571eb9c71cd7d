package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/checkpoint"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

const (
	besideRest  = time.Second     // lines come in bursts, and a file that is younger may still be written
	besideAgain = 2 * time.Second // until what had to wait is looked at again
	besideBytes = 1 << 20         // stored bytes of blobs that are queued in one transaction
)

// beside finds and queues the files beside transcripts. It looks at nothing while no lines come.
type beside struct {
	db      *state.DB
	desk    *desk
	log     *slog.Logger
	takes   func(dest string) bool // whether a server is known to take blobs
	wanted  func() bool            // whether any is
	file    func(tail.FileID) (tail.Tracked, bool)
	roots   func() []string
	resting func() bool // nothing is being imported
	most    func() int64

	bell   chan struct{}
	all    atomic.Bool // every session's folder is to be looked at
	looked atomic.Bool // folders were, and memory can be given back

	passing sync.Mutex // held by whoever looks at folders

	mu    sync.Mutex
	dirty map[tail.FileID]bool // main transcripts whose folder is to be looked at; guarded by mu
}

// wireBeside makes what finds files beside transcripts. Nothing runs yet.
func (d *Daemon) wireBeside() {
	b := newBeside(d.db, d.desk, d.log)
	b.takes = func(dest string) bool { return d.dests.takes(dest, outbox.Blob) }
	b.wanted = func() bool {
		for dest := range d.dests.drainers() {
			if b.takes(dest) {
				return true
			}
		}
		return false
	}
	b.file = d.tailer.File
	b.roots = func() []string { return d.conf.Load().Roots }
	b.resting = func() bool { return !d.tailer.Stats().Importing }
	b.most = func() int64 { return d.conf.Load().BlobCap }
	d.beside, d.relay.beside = b, b
	d.dests.accepts = d.accepts
}

// accepts takes in that a server begins to take kinds beside lines. What was withheld from it before is queued again.
func (d *Daemon) accepts(dest string, kinds outbox.Kinds, again bool) error {
	ctx := context.Background()
	if kinds.Has(outbox.Blob) {
		if again {
			if err := d.db.ForgetBeside(ctx, dest); err != nil {
				return err
			}
		}
		d.beside.everything()
	}
	if kinds.Has(outbox.Checkpoints) && again {
		if err := checkpoint.Resend(ctx, d.db, dest); err != nil {
			return err
		}
	}
	if kinds.Has(outbox.Documents) && again {
		return d.documents.announced(ctx, dest)
	}
	return nil
}

func newBeside(db *state.DB, d *desk, log *slog.Logger) *beside {
	return &beside{db: db, desk: d, log: log, bell: make(chan struct{}, 1), dirty: map[tail.FileID]bool{}}
}

// touched says that lines of a transcript were queued. It never blocks for long.
func (b *beside) touched(c *tail.Chunk, f *state.Facts) {
	if c.File.Kind == tail.History || !b.takes(f.Dest) {
		return
	}
	id := c.File.ID
	if c.File.Kind == tail.Agent {
		var ok bool
		folder := filepath.Join(projectFolder(c.File), f.Stream.Parent)
		if id, ok = b.mainOf(f.Stream.Parent, folder); !ok {
			return
		}
	}
	b.mu.Lock()
	b.dirty[id] = true
	b.mu.Unlock()
	b.ring()
}

func (b *beside) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// mainOf is the main transcript that a session's folder lies beside.
func (b *beside) mainOf(session, folder string) (tail.FileID, bool) {
	const copies = 8 // a session that was moved may have left a file of its name elsewhere
	for n := 1; n <= copies; n++ {
		id, known := b.desk.streamID(transcript.StreamName(session, "", n))
		if !known {
			return 0, false
		}
		if t, ok := b.file(id); ok && t.File.Path == folder+".jsonl" {
			return id, true
		}
	}
	return 0, false
}

// everything has every session's folder looked at, once nothing is being imported.
func (b *beside) everything() {
	b.all.Store(true)
	b.ring()
}

// Run looks at folders until ctx is done.
func (b *beside) Run(ctx context.Context) error {
	b.everything()           // what was noted before the last stop is forgotten
	var due <-chan time.Time // nil: nothing is
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.bell:
			if due == nil {
				due = time.After(besideRest)
			}
		case <-due:
			due = nil
			if err := b.pass(ctx, false); err != nil && ctx.Err() == nil {
				b.log.Warn("cannot queue files beside transcripts yet", "err", err)
			}
			if b.waiting() {
				due = time.After(besideAgain)
			}
		}
	}
}

// again looks at a transcript's folder at once, and returns when what it found has left the outbox.
func (b *beside) again(ctx context.Context, id tail.FileID, drained func(context.Context, uint64) error) error {
	b.mu.Lock()
	b.dirty[id] = true
	b.mu.Unlock()
	if err := b.pass(ctx, true); err != nil {
		return err
	}
	return drained(ctx, b.db.LastSeq())
}

func (b *beside) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.dirty) > 0 || b.all.Load()
}

// pass looks at all folders that are due. With now it does not wait for a file that may still be written, nor for the
// end of an import. What cannot be done yet stays due; an error is the first that stood in the way.
func (b *beside) pass(ctx context.Context, now bool) error {
	b.passing.Lock()
	defer b.passing.Unlock()
	if b.all.Load() && (now || b.resting()) {
		b.all.Store(false)
		if b.wanted() { // else whoever begins to want them asks for everything
			b.addAll()
			b.looked.Store(true)
		}
	}
	b.mu.Lock()
	due := b.dirty
	b.dirty = map[tail.FileID]bool{}
	b.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	b.looked.Store(true)
	packer := outbox.NewPacker()
	var first error
	for _, id := range slices.Sorted(maps.Keys(due)) {
		if first == nil {
			done, err := b.look(ctx, id, packer, now)
			if first = err; done {
				delete(due, id)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(b.dirty, due)
	return first
}

// addAll notes every main transcript that has a folder. It reads folders, not what is remembered of ten thousand files.
func (b *beside) addAll() {
	for _, root := range b.roots() {
		projects, _ := os.ReadDir(root) // what cannot be listed is told elsewhere, and looked at when lines come
		for _, p := range projects {
			sessions, _ := os.ReadDir(filepath.Join(root, p.Name()))
			for _, s := range sessions {
				if !s.IsDir() {
					continue
				}
				if id, ok := b.mainOf(s.Name(), filepath.Join(root, p.Name(), s.Name())); ok {
					b.mu.Lock()
					b.dirty[id] = true
					b.mu.Unlock()
				}
			}
		}
	}
}

// destination is where the files beside a main transcript go; "": nowhere.
func (b *beside) destination(ctx context.Context, t tail.Tracked) (string, error) {
	facts, known, err := b.db.Facts(ctx, t.File.ID)
	if err != nil || !known || !facts.Decided || b.desk.graves.has(facts.Stream.SessionID) {
		return "", err
	}
	_, dest, result := b.desk.route(&facts, b.desk.rules.Load())
	if result.Err != nil || dest != facts.Dest || !b.takes(dest) {
		return "", nil // what is read again for another server comes by again
	}
	return dest, nil
}

// look queues the new files beside a main transcript. It says whether all of them are.
func (b *beside) look(ctx context.Context, id tail.FileID, packer *outbox.Packer, now bool) (done bool, err error) {
	t, ok := b.file(id)
	if !ok || t.File.Kind != tail.Main {
		return true, nil
	}
	dest, err := b.destination(ctx, t)
	if dest == "" || err != nil {
		return err == nil, err
	}
	root, err := os.OpenRoot(t.File.Root)
	if err != nil {
		return true, nil // the root is gone or cannot be listed, which is told elsewhere
	}
	defer root.Close()
	folder := sessionFolder(t.File)
	files, err := listBeside(root, folder)
	if err != nil {
		b.log.Warn("cannot list the files beside a transcript", "err", err)
	}
	if len(files) == 0 {
		return true, nil
	}
	queued, err := b.db.Beside(ctx, dest, id)
	if err != nil {
		return false, err
	}
	q := besideQueue{beside: b, root: root, file: t.File, folder: folder, dest: dest, packer: packer, done: true}
	for i := range files {
		f := &files[i]
		was, known := queued[f.name]
		if known && was.Size == f.info.Size() && was.ModTime == f.info.ModTime().UnixNano() || f.info.Size() > b.most() {
			continue
		}
		if age := time.Since(f.info.ModTime()); !now && age >= 0 && age < besideRest {
			q.done = false
			continue
		}
		if err := q.add(ctx, f); err != nil {
			return false, err
		}
	}
	return q.done, q.flush(ctx)
}

// besideQueue gathers files of one folder for a transaction.
type besideQueue struct {
	*beside
	root         *os.Root
	file         tail.File
	folder, dest string
	packer       *outbox.Packer
	files        []state.BesideFile
	batches      []outbox.Batch
	stored       int
	done         bool // nothing was left for later
}

// add reads a file. One that is changing is left for later; one that cannot be read until lines come again.
func (q *besideQueue) add(ctx context.Context, listed *besideFile) error {
	if !q.db.Room(false) {
		q.done = false
		return nil
	}
	f, content, err := readBeside(q.root, q.folder, listed)
	switch {
	case errors.Is(err, errChanging):
		q.done = false
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		q.log.Warn("cannot read a file beside a transcript", "err", err)
		return nil
	}
	ref := outbox.BlobRef{
		SHA256: f.SHA256, Name: f.Name, Media: besideMedia(f.Name), Size: f.Size,
		Root: q.file.Root, Path: path.Join(q.folder, f.Name),
	}
	batch := q.packer.Blob(ref, content)
	q.files, q.batches = append(q.files, f), append(q.batches, batch)
	if q.stored += len(batch.Frame); q.stored < besideBytes {
		return nil
	}
	return q.flush(ctx)
}

func (q *besideQueue) flush(ctx context.Context) error {
	if len(q.files) == 0 {
		return nil
	}
	err := q.db.QueueBeside(ctx, q.dest, q.file.ID, q.files, q.batches)
	q.files, q.batches, q.stored = nil, nil, 0
	return err
}
