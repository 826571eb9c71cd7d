package daemon

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// verifier is one run of verify.
type verifier struct {
	d        *Daemon
	exclude  map[string]bool
	dead     map[uint64]map[int64]uint32 // lines of a stream the server refuses, and in which generation it did
	optedOut map[tail.FileID]string

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
	v.report.Waiting, v.report.Withheld = synced.Waiting, synced.Withheld
	if !synced.Done { // what cannot be listed cannot be compared either
		v.report.Incomplete, v.whole = synced.Detail, true
	}
	facts, err := d.db.LoadFacts(ctx)
	if err != nil {
		return control.VerifyReport{}, err
	}
	files := v.pick(facts, req.Session)
	if err := v.compareAll(ctx, files, facts); err != nil {
		return control.VerifyReport{}, err
	}
	v.finish()
	d.stirred.Store(true)
	return v.report, nil
}

func (d *Daemon) newVerifier(ctx context.Context, progress func(control.VerifyProgress)) (*verifier, error) {
	v := &verifier{
		d: d, exclude: map[string]bool{}, dead: map[uint64]map[int64]uint32{},
		optedOut: d.excludedFiles(), progress: progress,
		report: control.VerifyReport{SchemaVersion: control.SchemaVersion, Proven: true},
	}
	for _, t := range d.cfg.ExcludeTypes {
		v.exclude[t] = true
	}
	letters, err := d.db.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range letters {
		if l.Reason == "damaged" {
			continue // the server never refused those: they count as missing
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

// compareAll compares files, two at a time: one reads while the server answers for the other.
func (v *verifier) compareAll(ctx context.Context, files []tail.Tracked, facts map[tail.FileID]state.Facts) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan tail.Tracked)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for t := range todo {
				if err := v.compare(ctx, t, facts[t.File.ID]); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
feed:
	for _, t := range files {
		select {
		case todo <- t:
		case <-ctx.Done():
			break feed
		}
	}
	close(todo)
	wg.Wait()
	return context.Cause(ctx)
}

// compare compares one transcript with its server. One that is rewound meanwhile is compared again as it is then.
func (v *verifier) compare(ctx context.Context, t tail.Tracked, f state.Facts) error {
	defer v.fileDone()
	const tries = 3
	for range tries {
		if err := v.compareOnce(ctx, &t, &f); !errors.Is(err, errMoved) {
			return err
		}
	}
	row := v.row(&t, &f)
	row.Equal = false
	v.add(row, nil, difference(row, "the file changes faster than it can be compared"))
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

func (v *verifier) compareOnce(ctx context.Context, t *tail.Tracked, f *state.Facts) error {
	row := v.row(t, f)
	if why, out := v.optedOut[t.File.ID]; out {
		row.Note = why
		v.addExcludedFile(row)
		return nil
	}
	if !f.Decided {
		row.Note = "not delivered yet"
		v.add(row, nil, difference(row, row.Note))
		return nil
	}
	p, err := v.prove(ctx, *t, f.SentBefore)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.vanished()
		return nil
	case err != nil && ctx.Err() == nil: // the others can still be compared
		v.add(row, nil, difference(row, err.Error()))
		return nil
	case err != nil:
		return err
	}
	row.Lines, row.Bytes, row.SHA256 = p.lines, p.bytes, hex.EncodeToString(p.sum.Sum(nil))
	if !v.d.dests.speaks(f.Dest) {
		return v.comparePlain(ctx, row, p, *t)
	}
	if f.Stream.Extended || p.end > 0 {
		return v.compareExtended(ctx, row, p, t, f)
	}
	v.add(row, p, nil)
	return nil
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
func (v *verifier) compareExtended(ctx context.Context, row control.FileReport, p *proof, t *tail.Tracked, f *state.Facts) error {
	r := v.d.dests.reader(f.Dest, v.d.origin)
	has, err := r.digest(ctx, row.SessionID, 0, 0, 0)
	if errors.Is(err, errNoStream) {
		has, err = &digest{}, nil
	}
	if err != nil {
		return err
	}
	if fresh, ok := v.d.tailer.File(t.File.ID); ok && (fresh.Cursor.Generation != t.Cursor.Generation || fresh.Provisional != t.Provisional) {
		*t = fresh
		return errMoved
	}
	g, ok := has.of(t.Cursor.Generation)
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
	p.refused = stillRefused(v.dead[f.Stream.ID], has.Generations, t.Cursor.Generation)
	lines, err := v.compareLines(ctx, &pages{reader: r, session: row.SessionID, generation: row.Generation}, p, *t, f)
	if err != nil {
		return err
	}
	v.add(row, p, v.judge(row, g, lines, t, p))
	return nil
}

// judge turns what was found into a difference; nil when all of it is accounted for.
func (v *verifier) judge(row control.FileReport, g generationDigest, lines *lineDiff, t *tail.Tracked, p *proof) *control.FileDifference {
	diff := difference(row, "")
	diff.Missing, diff.Differ = lines.missing, lines.differ
	end, grown := p.end, false
	if fresh, ok := v.d.tailer.File(t.File.ID); ok && fresh.Cursor.Offset > t.Cursor.Offset {
		end, grown = fresh.Cursor.Line, true
	}
	if g.EndLine > end {
		diff.Extra = []control.Range{{First: end, Last: g.EndLine - 1}}
	}
	if len(diff.Missing)+len(diff.Differ)+len(diff.Extra) > 0 {
		return diff
	}
	if newline := t.Provisional.Length == 0; g.EOFNewline != newline && p.lines > 0 && !grown {
		diff.Detail = "only the newline at the end differs"
		return diff
	}
	return nil
}

func difference(row control.FileReport, detail string) *control.FileDifference {
	return &control.FileDifference{SessionID: row.SessionID, Path: row.Path, Generation: row.Generation, Detail: detail}
}

// reader is how verify asks a destination.
func (d *destinations) reader(dest string, o outbox.Origin) *reader {
	raw, dir, projects := strings.Cut(dest, "#")
	base, _ := url.Parse(raw)
	key := d.ownKey.read
	if projects {
		key = projectCredentials(dir)
	}
	return &reader{
		base: base, key: key, client: d.client, agent: o.UserAgent,
		origin: url.Values{"machine": {o.Machine}, "epoch": {o.Epoch}},
	}
}
