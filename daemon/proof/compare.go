package proof

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// candidate is a transcript that was read and waits to be compared with what its server holds.
type candidate struct {
	report  control.FileReport
	summary *summary
	file    tail.Tracked
	facts   state.Routing
}

// compareFiles compares transcripts: two goroutines read, one asks servers about what was read.
func (v *verifier) compareFiles(ctx context.Context, files []tail.Tracked) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo, read := make(chan tail.Tracked), make(chan *candidate, mostAsked)
	var readers, asker sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for t := range todo {
				if err := v.readFile(ctx, t, v.facts[t.File.ID], read); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	asker.Go(func() {
		if err := v.askServers(ctx, read); err != nil {
			cancel(err)
		}
	})
feed:
	for _, t := range files {
		select {
		case todo <- t:
		case <-ctx.Done():
			break feed
		}
	}
	close(todo)
	readers.Wait()
	close(read)
	asker.Wait()
	return context.Cause(ctx)
}

// readFile reads a transcript and passes it on, unless its comparison needs no server.
func (v *verifier) readFile(ctx context.Context, t tail.Tracked, f state.Routing, read chan<- *candidate) error {
	c, err := v.candidate(ctx, t, f)
	if c == nil || err != nil {
		v.report.fileDone()
		return err
	}
	select {
	case read <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// candidate reads a transcript. It returns nil if no comparison with a server is needed.
func (v *verifier) candidate(ctx context.Context, t tail.Tracked, f state.Routing) (*candidate, error) {
	report := reportOf(&t, &f)
	if why, excluded := v.excluded[t.File.ID]; excluded {
		report.Note = why
		v.report.addExcluded(report)
		return nil, nil
	}
	if !f.Decided && v.options.Delivered.began(t.File.ID) {
		v.report.update(func(r *recorder) { r.Began++ })
		return nil, nil
	}
	unfinished, whole := v.unfinished(&t)
	if unfinished {
		v.report.update(func(r *recorder) { r.Unfinished++ })
	}
	if !f.Decided && !whole {
		return nil, nil
	}
	if !f.Decided {
		report.Note = detailUndelivered
		v.report.add(report, nil, difference(report, report.Note))
		return nil, nil
	}
	s, err := v.summarize(ctx, t, &f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.report.update(func(r *recorder) { r.Vanished++ })
		return nil, nil
	case err != nil && ctx.Err() == nil: // the others can still be compared
		v.report.add(report, nil, difference(report, err.Error()))
		return nil, nil
	case err != nil:
		return nil, err
	}
	report.Lines, report.Bytes, report.SHA256 = s.lines, s.bytes, s.digest(s.end)
	c := &candidate{report, s, t, f}
	if !v.Servers.SpeaksExtension(f.Dest) {
		return nil, v.comparePlain(ctx, c)
	}
	if f.Stream.Extended || s.end > 0 {
		return c, nil
	}
	v.report.add(report, s, nil)
	return nil, nil
}

// comparePlain proves only that the disk holds what was acknowledged: the plain protocol has no way to ask for more.
func (v *verifier) comparePlain(ctx context.Context, c *candidate) error {
	marks, err := v.State.Files.Marks(ctx, c.file.File.ID)
	if err != nil {
		return err
	}
	c.report.Note = "acknowledged, not proven"
	var diff *control.FileDifference
	if waiting := v.State.Outbox.QueuedEntries(c.file.File.ID); waiting > 0 {
		diff = difference(c.report, "lines still wait to be acknowledged")
	} else if ok, err := tail.Holds(c.file.File.Path, marks, c.file.Cursor); err != nil || !ok {
		diff = difference(c.report, "the file is not what was acknowledged")
	}
	v.report.update(func(r *recorder) { r.Proven = false })
	v.report.add(c.report, c.summary, diff)
	return nil
}

// compareUnmoved compares a transcript with its server's digest. If the transcript is rewound, written anew or removed
// meanwhile, it reads the transcript and asks the server again.
func (v *verifier) compareUnmoved(ctx context.Context, c *candidate, has protocol.Digest) error {
	defer v.report.fileDone()
	const tries = 3
	for range tries {
		err := v.compareDigest(ctx, c, has)
		if !errors.Is(err, errMoved) {
			return err
		}
		if c, err = v.candidate(ctx, c.file, c.facts); c == nil || err != nil {
			return err
		}
		has, err = v.reader(c.facts.Dest).Digest(ctx, v.ref(c))
		if err != nil && !remote.Is(err, control.CodeNoSession) {
			return err
		}
	}
	v.report.add(c.report, nil, difference(c.report, detailMoves))
	return nil
}

// errMoved means that during the comparison a transcript was rewound, written anew or removed, or its last line was
// delivered without newline.
var errMoved = errors.New("transcript changed while comparing")

// compareDigest compares digests, and where they differ line by line.
func (v *verifier) compareDigest(ctx context.Context, c *candidate, has protocol.Digest) error {
	s, t := c.summary, &c.file
	now, ok := v.Files.File(t.File.ID)
	if ok && (now.Cursor.Generation != t.Cursor.Generation || now.Provisional != t.Provisional) {
		*t = now
		return errMoved
	}
	g, ok := has.Newest()
	newline := t.Provisional.Length == 0
	s.retired = min(g.CountRetired(), s.lines)
	switch {
	case ok && g.Lines == s.lines && g.SHA256 != "" && g.SHA256 == s.digest(g.EndLine) && g.EOFNewline == newline,
		!ok && s.lines == 0:
		v.add(c, nil)
		return nil
	case !ok:
		diff := difference(c.report, detailNothing)
		diff.Missing = []control.Range{{First: 0, Last: s.end - 1}}
		v.add(c, diff)
		return nil
	}
	s.refused = stillRefused(v.deadLines[c.facts.Stream.ID], has.Generations, t.Cursor.Generation)
	s.maskedThere, s.retiredThere, s.notes = g.MaskedLines(), g.IsRetired, Notes(&g)
	ref, generation := v.ref(c), g.Generation
	ref.Epoch, ref.Generation = has.Epoch, &generation
	lines, err := v.compareLines(ctx, c, NewHashes(v.reader(c.facts.Dest), ref))
	if err != nil {
		return err
	}
	diff := v.explain(c, g, lines)
	if diff != nil && diff.Detail == "" && (uint32(g.Generation) != t.Cursor.Generation ||
		has.Epoch != v.Origin.EpochOf(&c.facts.Stream)) {
		diff.Detail = detailOtherView
	}
	v.add(c, diff)
	return nil
}

// Details of differences.
const (
	detailMoves        = "the file changes faster than it can be compared"
	detailUndelivered  = "not delivered yet"
	detailNothing      = "the server has nothing of this transcript"
	detailNoGeneration = "the server does not have this generation"
	detailEarlier      = "damaged on the server: the lines before and after are the same as on disk"
	detailOtherView    = "the server shows another generation than the one on disk"
)

// explain turns the lines that differ into a difference; nil if the digests differ for a harmless reason.
func (v *verifier) explain(c *candidate, g protocol.ViewDigest, lines *lineDiff) *control.FileDifference {
	s, t := c.summary, &c.file
	diff := difference(c.report, "")
	diff.Missing, diff.Differ = lines.missing, lines.differ
	end, grown := s.end, false
	if now, ok := v.Files.File(t.File.ID); ok && now.Cursor.Offset > t.Cursor.Offset {
		end, grown = now.Cursor.Line, true
	}
	if g.EndLine > end {
		diff.Extra = []control.Range{{First: end, Last: g.EndLine - 1}}
	}
	if len(diff.Missing)+len(diff.Differ)+len(diff.Extra) > 0 {
		return diff
	}
	if newline := t.Provisional.Length == 0; g.EOFNewline != newline && s.lines > 0 && !grown {
		diff.Detail = "only the newline at the end differs"
		return diff
	}
	return nil
}

// Delivered is the transcripts on disk, as far as they were delivered before a comparison. nil: nobody knows.
type Delivered struct {
	files []tail.Tracked
	known map[tail.FileID]bool // before the sync began
}

// restLimit is how long a comparison waits for what came during the sync before it.
const restLimit = time.Minute

// delivered waits until the transcripts are delivered as they are after a sync: sessions go on and begin meanwhile.
// before are those that were known when the sync began.
func (s *Service) delivered(ctx context.Context, deps Deps, before []tail.Tracked) (*Delivered, error) {
	d := &Delivered{files: deps.Files.Files(), known: map[tail.FileID]bool{}}
	for _, t := range before {
		d.known[t.File.ID] = true
	}
	ctx, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	return d, s.Syncer.Drained(ctx, deps.State.Outbox.LastSeq())
}

// began reports whether a transcript that is not delivered began after the sync, which delivers all that it finds.
func (d *Delivered) began(id tail.FileID) bool { return d != nil && !d.known[id] }

// Check asks a server for its ledger. If the ledger is not the one known here, both sides are compared, and Check asks
// again: the database may have been exchanged meanwhile. It finds a server or daemon that was set back in time;
// otherwise only the next write would show that. If the server cannot be asked, Check returns the error at once.
func (r *Reconciler) Check(ctx context.Context, dest string) error {
	for {
		known, writer, err := r.Servers.Ledger(ctx, dest)
		if known.Store == "" || writer == "" {
			return err // the server keeps no ledger, or nothing was ever sent
		}
		at, err := r.Servers.Reader(dest).Ledger(ctx, r.Origin.Machine, known.Count)
		if err != nil {
			return err
		}
		code := judge(&at, &known, writer)
		if code == "" {
			return r.retryLeft(ctx, dest)
		}
		compared := r.await(dest)
		if !r.Servers.StepBack(dest, code, writer) {
			continue // compared since the request
		}
		select {
		case <-compared:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// retryLeft queues what a comparison that did not end left behind as replaced.
func (r *Reconciler) retryLeft(ctx context.Context, dest string) error {
	if r.State.Outbox.Usage().Dead == 0 {
		return nil
	}
	c, err := r.newComparison(ctx, dest)
	if err != nil {
		return err
	}
	return c.retryReplaced(ctx)
}

// judge returns the code with which a server whose ledger is at would refuse a write of an incarnation that knows
// another ledger; "" if it would accept. Writes of this incarnation may be in flight.
func judge(at *protocol.WriteLedger, known *protocol.Ledger, writer string) string {
	switch {
	case known.Doubt:
		return protocol.CodeStoreBehind
	case at.Store != known.Store:
		return protocol.CodeOtherStore
	case at.Count < known.Count, at.Since != "" && known.Token != "" && at.Since != known.Token:
		return protocol.CodeStoreBehind
	case at.Writer == writer, at.Writer == known.Writer && at.Count == known.Count:
		return ""
	case known.Writer == writer:
		return protocol.CodeWriterReplaced
	}
	return protocol.CodeWriterBehind
}

// await returns a channel that is closed once a server was compared.
func (r *Reconciler) await(dest string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := make(chan struct{})
	r.waiting[dest] = append(r.waiting[dest], done)
	return done
}

// release ends the waiting of Check for a server.
func (r *Reconciler) release(dest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, done := range r.waiting[dest] {
		close(done)
	}
	delete(r.waiting, dest)
}
