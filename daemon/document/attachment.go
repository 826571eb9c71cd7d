package document

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
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
