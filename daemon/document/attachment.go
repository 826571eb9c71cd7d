package document

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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// Small files hold tool output that is too long for a line, and how an agent was started. Each appears once, at about
// the time of the line that refers to it. So they need no file system watch: a session's folder is listed after new
// lines of the session, and never otherwise.

const (
	minAge     = time.Second     // lines come in bursts, and a younger file may still be written
	retryAfter = 2 * time.Second // until postponed files are checked again
)

// servers knows what servers accept. Safe for concurrent use.
type servers interface {
	// Takes reports whether a server is known to accept a kind of row.
	Takes(dest string, kind outbox.Kind) bool
	// AnyTakes reports whether any server does.
	AnyTakes(kind outbox.Kind) bool
}

// settings are the configuration in force, which may change at any time. Safe for concurrent use.
type settings interface {
	Roots() []string
	BlobCap() int64 // larger files are not sent
}

// Collector finds attachments and queues them. Safe for concurrent use.
type Collector struct {
	AttachmentDeps

	bell   outbox.Bell
	all    atomic.Bool // list every session's folder
	listed atomic.Bool // folders were listed since the last call of Freed

	listing sync.Mutex // held while folders are listed

	mu    sync.Mutex
	dirty map[tail.FileID]bool // main transcripts whose folder must be listed; guarded by mu
}

// AttachmentDeps is what a Collector needs. All fields are required.
type AttachmentDeps struct {
	Projections *projection.DB
	Files       *tail.Tailer
	Router      *route.Router
	Servers     servers
	Settings    settings
	Masking     Masking
	Log         *slog.Logger
}

// NewAttachments returns a Collector. It starts nothing.
func NewAttachments(d AttachmentDeps) *Collector {
	return &Collector{AttachmentDeps: d, bell: outbox.NewBell(), dirty: map[tail.FileID]bool{}}
}

// Committed notes that lines of a transcript were queued. It never blocks for long.
func (c *Collector) Committed(chunk *tail.Chunk, d *route.Decision) {
	f, facts := chunk.File, &d.Facts
	if f.Kind == tail.History || !c.Servers.Takes(facts.Dest, outbox.Blob) {
		return
	}
	id := f.ID
	if f.Kind == tail.Agent {
		var ok bool
		if id, ok = c.mainOf(facts.Stream.Parent, filepath.Join(f.ProjectFolder(), facts.Stream.Parent)); !ok {
			return
		}
	}
	c.mark(id)
	c.bell.Ring()
}

func (c *Collector) mark(id tail.FileID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty[id] = true
}

// mainOf finds the main transcript next to a session's folder.
func (c *Collector) mainOf(session, folder string) (tail.FileID, bool) {
	const copies = 8 // a session that was moved may have left a file of its name elsewhere
	for n := 1; n <= copies; n++ {
		id, known := c.Router.StreamID(transcript.StreamName(session, "", n))
		if !known {
			return 0, false
		}
		if t, ok := c.Files.File(id); ok && t.File.Path == folder+".jsonl" {
			return id, true
		}
	}
	return 0, false
}

// ListAll schedules every session's folder for listing, once no import is running.
func (c *Collector) ListAll() {
	c.all.Store(true)
	c.bell.Ring()
}

// Run lists folders until ctx is done.
func (c *Collector) Run(ctx context.Context) error {
	c.ListAll()              // marks do not survive a restart
	var due <-chan time.Time // nil: nothing is due
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.bell:
			if due == nil {
				due = time.After(minAge)
			}
		case <-due:
			due = nil
			if err := c.listDue(ctx, false); err != nil && ctx.Err() == nil {
				c.Log.Warn("cannot queue attachments; retrying", "err", err)
			}
			if c.Pending() {
				due = time.After(retryAfter)
			}
		}
	}
}

// Queue queues what is on disk now in all folders that are due. It does not wait for files that may still be written,
// or for the end of an import.
func (c *Collector) Queue(ctx context.Context) error { return c.listDue(ctx, true) }

// QueueOf is Queue, and also lists a main transcript's folder, due or not.
func (c *Collector) QueueOf(ctx context.Context, id tail.FileID) error {
	c.mark(id)
	return c.listDue(ctx, true)
}

// Pending reports whether folders still have to be listed.
func (c *Collector) Pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.dirty) > 0 || c.all.Load()
}

// Freed reports whether folders were listed since its last call, so that memory can be returned to the system.
func (c *Collector) Freed() bool { return c.listed.Swap(false) }

// listDue lists all folders that are due; for now see Queue. What cannot be queued yet stays due. It returns the first
// error.
func (c *Collector) listDue(ctx context.Context, now bool) error {
	c.listing.Lock()
	defer c.listing.Unlock()
	if c.all.Load() && (now || !c.Files.Stats().Importing) {
		c.all.Store(false)
		if c.Servers.AnyTakes(outbox.Blob) { // otherwise ListAll is called once a server accepts blobs
			c.markAll()
			c.listed.Store(true)
		}
	}
	c.mu.Lock()
	due := c.dirty
	c.dirty = map[tail.FileID]bool{}
	c.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	c.listed.Store(true)
	packer := outbox.NewPacker()
	var first error
	for _, id := range slices.Sorted(maps.Keys(due)) {
		if first == nil {
			done, err := c.queueFolder(ctx, id, packer, now)
			if first = err; done {
				delete(due, id)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.dirty, due)
	return first
}

// markAll marks every main transcript that has a folder. It lists folders on disk instead of checking the thousands of
// files that the tailer may remember.
func (c *Collector) markAll() {
	for _, root := range c.Settings.Roots() {
		c.markBelow(root, 0)
	}
}

// markBelow marks those in a folder, and in the folders below it that belong to no session. Folders that cannot be
// listed are in the status; new lines list them again.
func (c *Collector) markBelow(dir string, depth int) {
	const deepest = 12 // as deep as transcripts are looked for
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		below := filepath.Join(dir, e.Name())
		if id, ok := c.mainOf(e.Name(), below); ok {
			c.mark(id)
		} else if depth < deepest && e.Name() != "subagents" && e.Name() != "tool-results" && e.Name() != ".git" {
			c.markBelow(below, depth+1)
		}
	}
}

// batchBytes is how many stored bytes of attachments are queued in one transaction.
const batchBytes = 1 << 20

// queueFolder queues the new files next to a main transcript. done reports whether all of them are queued.
func (c *Collector) queueFolder(ctx context.Context, id tail.FileID, packer *outbox.Packer,
	now bool) (done bool, err error) {
	t, ok := c.Files.File(id)
	if !ok || t.File.Kind != tail.Main {
		return true, nil
	}
	dest, cwd, err := c.destination(ctx, t)
	if dest == "" || err != nil {
		return err == nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(t.File.Path)) // the folder may be a link
	if err != nil {
		return true, nil // the folder is gone or cannot be listed: status reports it
	}
	defer root.Close()
	folder := sessionFolder(t.File)
	files, err := list(root, folder)
	if err != nil {
		c.Log.Warn("cannot list the attachments of a transcript", "err", err)
	}
	if len(files) == 0 {
		return true, nil
	}
	queued, err := c.Projections.Attachments.Queued(ctx, dest, id)
	if err != nil {
		return false, err
	}
	b := batch{
		Collector: c, root: root, file: t.File, folder: folder, dest: dest, masker: c.Masking.For(dest, cwd), packer: packer,
		done: true,
	}
	for i := range files {
		f := &files[i]
		was, known := queued[f.name]
		same := known && was.Size == f.info.Size() && was.ModTime == f.info.ModTime().UnixNano()
		if same || f.info.Size() > c.Settings.BlobCap() {
			continue
		}
		if age := time.Since(f.info.ModTime()); !now && age >= 0 && age < minAge {
			b.done = false
			continue
		}
		if err := b.add(ctx, f); err != nil {
			return false, err
		}
	}
	return b.done, b.commit(ctx)
}

// destination returns where the attachments of a main transcript go ("" for nowhere), and its project's folder.
func (c *Collector) destination(ctx context.Context, t tail.Tracked) (dest, cwd string, err error) {
	facts, known, err := c.Projections.State.Files.Routing(ctx, t.File.ID)
	if err != nil || !known || !facts.Decided {
		return "", "", err
	}
	dest, _ = c.Router.Destination(&facts)
	if dest != facts.Dest || !c.Servers.Takes(dest, outbox.Blob) {
		return "", "", nil // a transcript that is read again for another server is marked again
	}
	return dest, facts.Stream.Cwd, nil
}

// batch collects files of one folder for a transaction.
type batch struct {
	*Collector
	root         *os.Root
	file         tail.File
	folder, dest string
	masker       *redact.Masker
	packer       *outbox.Packer
	files        []projection.Attachment
	rows         []outbox.Batch
	stored       int
	done         bool // no file was left for later
}

// add reads a file. A file that is changing is postponed; one that cannot be read waits for the next lines.
func (b *batch) add(ctx context.Context, f *listedFile) error {
	if !b.Projections.State.HasCapacity(false) {
		b.done = false
		return nil
	}
	read, content, err := f.read(b.root, b.folder, b.masker)
	switch {
	case errors.Is(err, errChanging):
		b.done = false
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		b.Log.Warn("cannot read an attachment", "err", err)
		return nil
	}
	media := "text/plain"
	if strings.HasSuffix(read.Name, ".json") {
		media = "application/json"
	}
	row := b.packer.Blob(outbox.BlobRef{
		SHA256: read.SHA256, Name: read.Name, Media: media, Size: read.Size,
		Root: b.root.Name(), Path: path.Join(b.folder, read.Name),
	}, content)
	b.files, b.rows = append(b.files, read), append(b.rows, row)
	if b.stored += len(row.Frame); b.stored < batchBytes {
		return nil
	}
	return b.commit(ctx)
}

func (b *batch) commit(ctx context.Context) error {
	if len(b.files) == 0 {
		return nil
	}
	err := b.Projections.Attachments.Queue(ctx, b.dest, b.file.ID, b.files, b.rows)
	b.files, b.rows, b.stored = nil, nil, 0
	return err
}
