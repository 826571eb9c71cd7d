package daemon

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// verifier is one run of verify.
type verifier struct {
	d        *Daemon
	rules    *route.Rules
	dead     map[uint64]map[int64]uint32 // lines of a stream the server refuses, and in which generation it did
	optedOut map[tail.FileID]string
	// deadBlobs are the files beside a transcript that the server refuses: name → sha256.
	deadBlobs map[tail.FileID]map[string]string

	mu       sync.Mutex
	report   control.VerifyReport   // guarded by mu
	at       control.VerifyProgress // guarded by mu
	progress func(control.VerifyProgress)

	// whole has every file compared to its end on disk: the sync before did not finish, so what lies behind the
	// cursors counts as missing.
	whole bool
}

// Verify syncs, then reads every transcript from byte 0 and compares it with what the server says it has.
func (d *Daemon) Verify(ctx context.Context, req control.VerifyRequest, progress func(control.VerifyProgress)) (control.VerifyReport, error) {
	synced, err := d.Sync(ctx, control.SyncRequest{Wait: true, Timeout: req.Timeout})
	if err != nil {
		return control.VerifyReport{}, err
	}
	if !synced.Done && !slices.Contains([]string{reasonTimeout, reasonRefused, reasonUnreadable, reasonFull}, synced.Reason) {
		return control.VerifyReport{}, syncError(synced)
	}
	v, err := d.newVerifier(ctx, progress)
	if err != nil {
		return control.VerifyReport{}, err
	}
	v.report.Waiting, v.report.Withheld, v.report.Resumed = synced.Waiting, synced.Withheld, synced.Resumed
	v.report.Former = synced.Former
	if !synced.Done { // what cannot be listed cannot be compared either
		v.report.Incomplete, v.whole = synced.Detail, true
	}
	facts, err := d.db.LoadFacts(ctx)
	if err != nil {
		return control.VerifyReport{}, err
	}
	for id, out := range d.router.ExcludedNow(facts) {
		v.optedOut[id] = out.Why
	}
	files := v.pick(facts, req.Session)
	if err := v.compareAll(ctx, files, facts); err != nil {
		return control.VerifyReport{}, err
	}
	if err := v.compareBeside(ctx, files, facts); err != nil {
		return control.VerifyReport{}, err
	}
	if req.Deep {
		if err := v.compareHistory(ctx, facts, req.Session); err != nil {
			return control.VerifyReport{}, err
		}
	}
	v.finish()
	d.stirred.Store(true)
	return v.report, nil
}

func (d *Daemon) newVerifier(ctx context.Context, progress func(control.VerifyProgress)) (*verifier, error) {
	v := &verifier{
		d: d, rules: d.router.Rules(), dead: map[uint64]map[int64]uint32{},
		optedOut: d.excludedFiles(), progress: progress, deadBlobs: map[tail.FileID]map[string]string{},
		report: control.VerifyReport{SchemaVersion: control.SchemaVersion, Proven: true},
	}
	letters, err := d.db.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range letters {
		if l.Reason == "damaged" {
			continue // the server never refused those: they count as missing
		}
		if l.Batch.Items > 0 {
			v.noteDeadBlob(&l)
			continue
		}
		lines := v.dead[l.Stream.ID]
		if lines == nil {
			lines = map[int64]uint32{}
			v.dead[l.Stream.ID] = lines
		}
		lines[l.Line] = max(lines[l.Line], l.Batch.Generation)
		v.report.Dead++
	}
	return v, nil
}

// pick chooses the transcripts on disk to compare, in the order of their paths.
func (v *verifier) pick(facts map[tail.FileID]state.Facts, session string) []tail.Tracked {
	var out []tail.Tracked
	for _, t := range v.d.tailer.Files() {
		name := facts[t.File.ID].Stream.SessionID
		if session != "" && !strings.HasPrefix(name, session) && !strings.HasPrefix(t.File.Name, session) {
			continue
		}
		if t.Gone != 0 {
			v.report.Vanished++
			continue
		}
		out = append(out, t)
		v.at.BytesTotal += t.Cursor.Offset
	}
	v.at.FilesTotal = len(out)
	sort.Slice(out, func(i, j int) bool { return out[i].File.Path < out[j].File.Path })
	return out
}

// askAtOnce is how many transcripts the server is asked about in one request.
const askAtOnce = 200

// candidate is a transcript that was read, and waits for the server's word on it.
type candidate struct {
	row   control.FileReport
	proof *proof
	file  tail.Tracked
	facts state.Facts
}

// compareAll compares files: two read, one asks the server meanwhile about what they have read.
func (v *verifier) compareAll(ctx context.Context, files []tail.Tracked, facts map[tail.FileID]state.Facts) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo, read := make(chan tail.Tracked), make(chan *candidate, askAtOnce)
	var readers, asker sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for t := range todo {
				if err := v.readOne(ctx, t, facts[t.File.ID], read); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	asker.Go(func() {
		if err := v.askAll(ctx, read); err != nil {
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

// readOne reads a transcript and passes it on, unless all there is to say about it is said without the server.
func (v *verifier) readOne(ctx context.Context, t tail.Tracked, f state.Facts, read chan<- *candidate) error {
	c, err := v.read(ctx, t, f)
	if c == nil || err != nil {
		v.fileDone()
		return err
	}
	select {
	case read <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askAll collects what was read and asks each server about many transcripts at once.
func (v *verifier) askAll(ctx context.Context, read <-chan *candidate) error {
	waiting := map[string][]*candidate{} // by destination
	for c := range read {
		dest := c.facts.Dest
		if waiting[dest] = append(waiting[dest], c); len(waiting[dest]) < askAtOnce {
			continue
		}
		if err := v.ask(ctx, waiting[dest]); err != nil {
			return err
		}
		waiting[dest] = nil
	}
	for _, dest := range slices.Sorted(maps.Keys(waiting)) {
		if err := v.ask(ctx, waiting[dest]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ask asks the server of some transcripts about them, and judges each.
func (v *verifier) ask(ctx context.Context, list []*candidate) error {
	if len(list) == 0 {
		return nil
	}
	refs := make([]remote.Ref, len(list))
	for i, c := range list {
		refs[i] = v.ref(c)
	}
	digests := make([]remote.Digest, len(list)) // an answer is read to its end first: judging may take long
	missing := map[int]bool{}
	err := v.d.dests.reader(list[0].facts.Dest).Digests(ctx, refs, false, func(i int, d remote.Digest, err error) error {
		if remote.Is(err, control.CodeNoSession) {
			missing[i] = true
			return nil
		}
		digests[i] = d
		return err
	})
	if err != nil {
		return err
	}
	forgotten := map[string]bool{}
	if len(missing) > 0 {
		if forgotten, err = v.forgottenBy(ctx, list[0].facts.Dest); err != nil {
			return err
		}
	}
	for i, c := range list {
		if missing[i] && isOf(c.row.SessionID, forgotten) {
			v.d.heardForgotten(uint64(c.file.File.ID))
			c.row.Note = route.Forgotten
			v.addExcludedFile(c.row)
			v.fileDone()
			continue
		}
		if err := v.settle(ctx, c, digests[i]); err != nil {
			return err
		}
	}
	return nil
}

// forgottenBy are the sessions that someone had a server forget.
func (v *verifier) forgottenBy(ctx context.Context, dest string) (map[string]bool, error) {
	list, err := v.d.dests.reader(dest).Forgotten(ctx)
	if err != nil && !remote.Is(err, remote.CodeNoReading) { // an older server forgets nothing
		return nil, err
	}
	names := map[string]bool{}
	for _, f := range list {
		names[f.SessionID] = true
	}
	return names, nil
}

// ref names a transcript of this state at its server.
func (v *verifier) ref(c *candidate) remote.Ref {
	return remote.Ref{Session: c.row.SessionID, Machine: &v.d.origin.Machine, Epoch: v.d.origin.Epoch}
}

// settle judges a transcript. One that is rewound meanwhile is read and asked about again, as it is then.
func (v *verifier) settle(ctx context.Context, c *candidate, has remote.Digest) error {
	defer v.fileDone()
	const tries = 3
	for range tries {
		err := v.compareExtended(ctx, c, has)
		if !errors.Is(err, errMoved) {
			return err
		}
		if c, err = v.read(ctx, c.file, c.facts); c == nil || err != nil {
			return err
		}
		has, err = v.d.dests.reader(c.facts.Dest).Digest(ctx, v.ref(c))
		if err != nil && !remote.Is(err, control.CodeNoSession) {
			return err
		}
	}
	c.row.Equal = false
	v.add(c.row, nil, difference(c.row, "the file changes faster than it can be compared"))
	return nil
}

// errMoved says that a transcript was rewound, or its last line delivered without newline, while it was compared.
var errMoved = errors.New("transcript changed while comparing")

func (v *verifier) row(t *tail.Tracked, f *state.Facts) control.FileReport {
	row := control.FileReport{
		SessionID: f.Stream.SessionID, Path: t.File.Path, Generation: t.Cursor.Generation, Equal: true,
	}
	row.Server, _, _ = strings.Cut(f.Dest, "#")
	return row
}

// read reads a transcript through today's rules. It answers nil when the report has all there is to say about it.
func (v *verifier) read(ctx context.Context, t tail.Tracked, f state.Facts) (*candidate, error) {
	row := v.row(&t, &f)
	if why, out := v.optedOut[t.File.ID]; out {
		row.Note = why
		v.addExcludedFile(row)
		return nil, nil
	}
	if !f.Decided {
		row.Note = "not delivered yet"
		v.add(row, nil, difference(row, row.Note))
		return nil, nil
	}
	p, err := v.prove(ctx, t, f.SentBefore)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.vanished()
		return nil, nil
	case err != nil && ctx.Err() == nil: // the others can still be compared
		v.add(row, nil, difference(row, err.Error()))
		return nil, nil
	case err != nil:
		return nil, err
	}
	row.Lines, row.Bytes, row.SHA256 = p.lines, p.bytes, hex.EncodeToString(p.sum.Sum(nil))
	if !v.d.dests.SpeaksExtension(f.Dest) {
		return nil, v.comparePlain(ctx, row, p, t)
	}
	if f.Stream.Extended || p.end > 0 {
		return &candidate{row, p, t, f}, nil
	}
	v.add(row, p, nil)
	return nil, nil
}

// comparePlain can only say that what the disk holds is what was acknowledged: the plain protocol has no way to ask.
func (v *verifier) comparePlain(ctx context.Context, row control.FileReport, p *proof, t tail.Tracked) error {
	marks, err := v.d.db.Marks(ctx, t.File.ID)
	if err != nil {
		return err
	}
	row.Note = "acknowledged, not proven"
	var diff *control.FileDifference
	if waiting := v.d.db.Pending(t.File.ID); waiting > 0 {
		diff = difference(row, "lines still wait to be acknowledged")
	} else if ok, err := tail.Holds(t.File.Path, marks, t.Cursor); err != nil || !ok {
		diff = difference(row, "the file is not what was acknowledged")
	}
	row.Equal = diff == nil
	v.mu.Lock()
	v.report.Proven = false
	v.mu.Unlock()
	v.add(row, p, diff)
	return nil
}

// compareExtended compares sums, and where they differ line by line.
func (v *verifier) compareExtended(ctx context.Context, c *candidate, has remote.Digest) error {
	row, p, t := c.row, c.proof, &c.file
	if fresh, ok := v.d.tailer.File(t.File.ID); ok && (fresh.Cursor.Generation != t.Cursor.Generation || fresh.Provisional != t.Provisional) {
		*t = fresh
		return errMoved
	}
	g, ok := has.Of(t.Cursor.Generation)
	newline := t.Provisional.Length == 0
	switch {
	case ok && g.Lines == p.lines && g.SHA256 == row.SHA256 && g.EndLine <= p.end && g.EOFNewline == newline:
		v.add(row, p, nil)
		return nil
	case !ok && p.lines == 0:
		v.add(row, p, nil)
		return nil
	case !ok:
		row.Equal = false
		diff := difference(row, "the server does not have this generation")
		diff.Missing = []control.Range{{First: 0, Last: p.end - 1}}
		v.add(row, p, diff)
		return nil
	}
	p.refused = stillRefused(v.dead[c.facts.Stream.ID], has.Generations, t.Cursor.Generation)
	ref, generation := v.ref(c), int64(row.Generation)
	ref.Generation = &generation
	lines, err := v.compareLines(ctx, &pages{reader: v.d.dests.reader(c.facts.Dest), ref: ref}, p, *t, &c.facts)
	if err != nil {
		return err
	}
	v.add(row, p, v.judge(row, g, lines, t, p))
	return nil
}
