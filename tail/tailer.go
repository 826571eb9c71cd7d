package tail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Tailer follows transcripts. Its methods are safe for concurrent use, also before and after Run.
type Tailer struct {
	cfg     Config
	log     *slog.Logger
	cursors Cursors
	sink    Sink
	started time.Time
	faults  faults
	clocks  fileClocks
	wall    func() time.Time // the clock on the wall, without its monotonic part
	arenas  sync.Pool        // *arena
	restAt  time.Duration    // how long after its last change a file may rest

	ended         chan struct{} // closed when Run returns
	wake          chan struct{} // wakes the main loop to read requests
	woken         atomic.Bool
	lastHeartbeat atomic.Int64 // when the main loop last made progress, in the time of now

	scan scanner // owned by the goroutine of Run

	mu       sync.Mutex
	cond     sync.Cond // work may have come, or the end
	table    table     // guarded by mu, as all below
	queue    queue
	requests requests
	watch    watchState
	stats    counters
	syncs    map[*syncWaiter]struct{}
	scrub    scrubQueue
	drowsy   fifo[doze]
}

// requests is what the main loop is asked to do.
type requests struct {
	full    bool // list everything
	reason  string
	hints   map[string]struct{} // paths at which something happened
	scanned []chan struct{}     // closed after the next full listing that began after they were put here
	early   []early             // before the files were known
	roots   *[]Root             // new roots; nil: unchanged
}

// early is something that is asked of files before they are known.
type early struct {
	ids  []FileID
	what func(*wishes)
}

// New makes a Tailer. Nothing is read and nothing runs before Run.
func New(cfg Config, cursors Cursors, sink Sink) *Tailer {
	cfg = cfg.withDefaults()
	t := &Tailer{
		cfg: cfg, log: cfg.Log, cursors: cursors, sink: sink,
		started: time.Now(), restAt: activeFor,
		wall:  func() time.Time { return time.Now().Round(0) },
		wake:  make(chan struct{}, 1),
		ended: make(chan struct{}),
		syncs: map[*syncWaiter]struct{}{},
	}
	t.arenas.New = func() any { return newArena(cfg.TurnBytes, AnchorSize) }
	t.cond.L = &t.mu
	t.requests.hints = map[string]struct{}{}
	t.table = newTable(cfg.Roots)
	t.queue.limit = cfg.Workers
	t.scrub.bell = make(chan struct{}, 1)
	t.watch.mode = "poll"
	return t
}

// now returns the time since the Tailer was made, never 0.
func (t *Tailer) now() time.Duration { return time.Since(t.started) + 1 }

// Run follows the transcripts until ctx is done, and returns nil when everything it started has ended. Call it once. It
// returns an error if the remembered files cannot be loaded.
func (t *Tailer) Run(ctx context.Context) error {
	defer close(t.ended)
	known, err := t.cursors.Load(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("load cursors: %w", err)
	}
	t.loadKnown(known)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer wg.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.cond.Broadcast()
	})()
	for range t.cfg.Workers + 1 {
		wg.Go(func() { t.runWorker(ctx) })
	}
	wg.Go(func() { t.runScrub(ctx) })
	t.startWatching(&wg)
	defer t.stopWatching()
	t.loop(ctx)
	cancel()
	t.keepMissed()
	return nil
}

// loadKnown adds the files of earlier runs.
func (t *Tailer) loadKnown(known []Tracked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range known {
		t.table.load(&known[i], &t.stats)
	}
	t.table.loaded = true
	for _, e := range t.requests.early {
		t.askLocked(e.ids, e.what)
	}
	t.requests.early = nil
}

// loop lists folders on time or on request, and hands files that are due to the workers.
func (t *Tailer) loop(ctx context.Context) {
	tick := time.NewTicker(t.tickInterval())
	defer tick.Stop()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	t.scan.clock = clock{Wall: t.wall(), Mono: t.now()}
	t.scanAll(ctx, "start")
	for ctx.Err() == nil {
		t.heartbeat()
		due.Reset(t.serveDue())
		select {
		case <-ctx.Done():
		case <-due.C:
		case <-tick.C:
			t.tick(ctx)
			tick.Reset(t.tickInterval())
		case <-t.wake:
			t.serveRequests(ctx)
		}
	}
}

// tick does the periodic work.
func (t *Tailer) tick(ctx context.Context) {
	if jump := t.scan.clock.Jump(t.wall(), t.now()); jump != 0 {
		t.log.Info("clock jumped: listing everything", "by", jump)
		t.askFull("clock jumped")
	}
	now := t.now()
	if now-t.scan.lastAll >= t.allInterval() {
		t.askFull("")
	}
	t.serveRequests(ctx)
	if now-t.scan.lastActive >= t.activeInterval() {
		t.scan.lastActive = now
		t.scanActive(ctx)
	}
	if t.queue.waitsForSpace(t) {
		t.retrySpace(now)
	}
	t.flush(ctx)
	t.restDrowsy()
}

// serveRequests handles the requests since the last call.
func (t *Tailer) serveRequests(ctx context.Context) {
	if t.woken.Swap(false) {
		t.wakeWaiting()
	}
	t.mu.Lock()
	if roots := t.requests.roots; roots != nil {
		t.requests.roots = nil
		t.mu.Unlock()
		t.changeRoots(*roots)
		t.mu.Lock()
	}
	hints, full, reason, begin := t.requests.hints, t.requests.full, t.requests.reason, t.scan.toList
	t.requests.full, t.requests.reason, t.scan.toList = false, "", nil
	if len(hints) > 0 {
		t.requests.hints = map[string]struct{}{}
	} else {
		hints = nil // the watcher goes on writing into it
	}
	t.mu.Unlock()
	t.scanFolders(ctx, begin)
	switch {
	case full:
		t.scanAll(ctx, reason)
	case len(hints) > 0:
		t.scanHints(ctx, hints)
	}
}

// ring wakes the goroutine that waits for a bell. It never blocks.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// askFull asks for a listing of everything as soon as possible.
func (t *Tailer) askFull(reason string) {
	t.mu.Lock()
	t.askFullLocked(reason)
	t.mu.Unlock()
}

func (t *Tailer) askFullLocked(reason string) {
	t.requests.full = true
	if reason != "" {
		t.requests.reason = reason
	}
	ring(t.wake)
}

// Wake says that the sink may have space again, or may take files it answered ErrLater. It never blocks.
func (t *Tailer) Wake() {
	t.woken.Store(true)
	ring(t.wake)
}

// Reread has files delivered from line 0 in a new generation. Ids that are not known are passed over.
func (t *Tailer) Reread(ids ...FileID) { t.ask(ids, func(w *wishes) { w.reread.ask() }) }

// Reload loads the stored cursors of files again, after the owner has changed them, and goes on from there. Unknown ids
// are ignored.
func (t *Tailer) Reload(ids ...FileID) { t.ask(ids, func(w *wishes) { w.reload.ask() }) }

// ask asks something of the next inspection of files, and has it made.
func (t *Tailer) ask(ids []FileID, what func(*wishes)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.table.loaded { // also of what is being loaded: that may be older than the call
		t.requests.early = append(t.requests.early, early{ids, what})
		return
	}
	t.askLocked(ids, what)
}

func (t *Tailer) askLocked(ids []FileID, what func(*wishes)) {
	for _, id := range ids {
		if f := t.table.byID[id]; f != nil {
			what(&f.wishes)
			if f.folder != nil {
				t.enqueue(f)
			}
		}
	}
}

// retry returns how long to wait after n failures in a row: 100 ms, doubling up to 5 s.
func retry(n int32) time.Duration {
	return min(100*time.Millisecond<<min(max(n-1, 0), 6), 5*time.Second)
}

// flush hands moves and vanishings to the cursors' keeper. What fails is tried again at the next tick.
func (t *Tailer) flush(ctx context.Context) {
	t.mu.Lock()
	var files []Tracked
	for f := range t.table.unsaved {
		if f.stored {
			files = append(files, f.view().Tracked)
		}
		delete(t.table.unsaved, f)
	}
	t.mu.Unlock()
	if len(files) == 0 {
		return
	}
	err := t.cursors.Update(ctx, files)
	if err == nil {
		return
	}
	if !errors.Is(err, context.Canceled) {
		t.log.Warn("cannot store moves yet", "err", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range files {
		if f := t.table.byID[files[i].File.ID]; f != nil {
			t.table.unsaved[f] = struct{}{}
		}
	}
}

// keepMissed stores at the end how long vanished files were missed, which is not worth a write each time.
func (t *Tailer) keepMissed() {
	t.mu.Lock()
	for f := range t.table.gone {
		if f.missedUnsaved {
			t.table.unsaved[f] = struct{}{}
		}
	}
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	t.flush(ctx)
}
