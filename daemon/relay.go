package daemon

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/attachment"
	"github.com/ccship/ccship/daemon/checkpoint"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/rewrite"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// relay is the tailer's Sink: it decides once for each file which stream it is and where its lines go, turns chunks
// into outbox rows, and commits both in one step.
type relay struct {
	db     *state.DB
	desk   *desk // decides
	log    *slog.Logger
	rows   sync.Pool // *rows
	counts counts

	copies derive.CopyDetector

	mu       sync.Mutex
	excluded map[tail.FileID]*optedOut // files whose project has opted out; guarded by mu

	events      *bus                  // hears of new transcripts and of rewinds
	rewrites    *rewrite.List         // notes rewinds
	attachments *attachment.Collector // notified of every committed chunk; may be nil
	derive      *derive.Deriver       // notified of every committed chunk; may be nil
}

// counts is what the relay saw since the daemon started.
type counts struct{ malformed, oversize atomic.Int64 }

func newRelay(db *state.DB, d *desk, log *slog.Logger) *relay {
	return &relay{
		db: db, desk: d, log: log,
		rows:     sync.Pool{New: func() any { return &rows{packer: outbox.NewPacker()} }},
		excluded: map[tail.FileID]*optedOut{},
	}
}

// Room says whether reading makes sense: there is a server to queue for, and space in the outbox.
func (r *relay) Room(live bool) bool { return r.desk.anyServer() && r.db.Room(live) }

// Deliver commits every chunk whose file has somewhere to go. See tail.Sink.
func (r *relay) Deliver(ctx context.Context, chunks []tail.Chunk) ([]tail.Result, error) {
	results := make([]tail.Result, len(chunks))
	steps := make([]state.Step, 0, len(chunks))
	at := make([]int, 0, len(chunks)) // steps[i] is of chunks[at[i]]
	w := r.rows.Get().(*rows)
	defer func() {
		w.release()
		r.rows.Put(w)
	}()
	w.exclude = r.desk.rules.Load().types
	var sum tally
	decided := make([]decision, 0, len(chunks)) // of steps
	compactions := make([]bool, 0, len(chunks)) // of steps
	for i := range chunks {
		d, result, err := r.desk.decide(ctx, &chunks[i])
		if err != nil {
			return nil, err
		}
		r.noteExcluded(chunks[i].File.ID, result.Err)
		if result.Err != nil {
			results[i] = plain(result)
			continue
		}
		steps = append(steps, r.step(&chunks[i], &d, w))
		at, decided, compactions = append(at, i), append(decided, d), append(compactions, w.tally.compaction)
		sum.malformed += w.tally.malformed
		sum.oversize += w.tally.oversize
	}
	if len(steps) == 0 {
		return results, nil
	}
	errs, err := r.commit(ctx, steps, chunks, at)
	if err != nil {
		return nil, err
	}
	for i, err := range errs {
		results[at[i]].Err = err
		if err == nil {
			r.tell(&chunks[at[i]], &decided[i])
			if r.derive != nil {
				r.derive.Note(&chunks[at[i]], &steps[i].Facts, compactions[i])
			}
		}
	}
	r.counts.malformed.Add(sum.malformed)
	r.counts.oversize.Add(sum.oversize)
	return results, nil
}

// commit makes steps durable, and around that what is left out of histories. steps[i] is of chunks[at[i]].
func (r *relay) commit(ctx context.Context, steps []state.Step, chunks []tail.Chunk, at []int) ([]error, error) {
	histories := slices.ContainsFunc(at, func(i int) bool { return chunks[i].File.Kind == tail.History })
	if histories {
		if err := r.desk.keepOmitted(ctx); err != nil {
			return nil, err
		}
	}
	errs, err := r.db.Commit(ctx, steps)
	if err != nil || !histories {
		return errs, err
	}
	for i, err := range errs {
		c := &chunks[at[i]]
		if err != nil || c.File.Kind != tail.History || c.From == c.Prev || c.From.Offset > 0 {
			continue
		}
		if err := r.desk.keepAnew(ctx, c.File.ID); err != nil {
			r.log.Warn("a history may be delivered once more at the next start", "err", err)
		}
	}
	return errs, nil
}

// step turns one chunk into the durable move of its file.
func (r *relay) step(c *tail.Chunk, d *decision, w *rows) state.Step {
	facts := d.facts
	r.copies.Watch(&facts, c, d.moved)
	if c.From != c.Prev {
		facts.RewoundTo = c.From.Line
		if c.From.Offset == 0 {
			facts.Excluded = 0
		}
	}
	w.omits = nil
	if c.File.Kind == tail.History {
		w.omits = func(line []byte) bool { return r.desk.omits(c.File.ID, line) }
	}
	facts.Stream.ID = uint64(c.File.ID)
	facts.Stream.Path = c.File.RelPath()
	batches := w.build(c, &facts)
	if d.moved {
		batches = r.resendCheckpoints(batches, c.File.ID, w.packer)
	}
	facts.Excluded += w.tally.excluded
	facts.Compacted = facts.Compacted || w.tally.compaction
	return state.Step{
		Prev: c.Prev, From: c.From, Tracked: c.Tracked, Marks: c.Marks,
		Facts: facts, Batches: batches, Live: c.Live,
	}
}

// resendCheckpoints adds the checkpoints of a transcript whose lines go to another server from here on.
func (r *relay) resendCheckpoints(batches []outbox.Batch, id tail.FileID, p *outbox.Packer) []outbox.Batch {
	again, err := checkpoint.Batches(context.Background(), r.db, p, id)
	if err != nil {
		r.log.Warn("the checkpoints of a session that goes to another server now are not sent there", "err", err)
	}
	return append(batches, again...)
}

// optedOut is why a file is not read: said by its project, not a failure.
type optedOut struct{ why, cwd string }

func (o *optedOut) Error() string { return "opted out: " + o.why }

// plain is what the tailer is told: for it an opted-out file is one that is not taken yet.
func plain(r tail.Result) tail.Result {
	if _, ok := errors.AsType[*optedOut](r.Err); ok {
		return tail.Result{Err: tail.ErrLater}
	}
	return r
}

// tell announces what a durable chunk is the first word of.
func (r *relay) tell(c *tail.Chunk, d *decision) {
	if r.attachments != nil {
		r.attachments.Committed(c, &d.facts)
	}
	if c.From != c.Prev && !d.moved && r.rewrites != nil {
		r.rewrites.Rewound(c, &d.facts)
	}
	if r.events.quiet() {
		return
	}
	t := control.TranscriptEvent{
		Session: d.facts.Stream.SessionID, Parent: d.facts.Stream.Parent, Path: c.File.Path, Cwd: d.facts.Stream.Cwd,
		Project: d.facts.Stream.Project, Generation: c.To.Generation, Line: c.From.Line,
	}
	switch {
	case d.fresh:
		r.events.publish(control.Event{Type: control.EventTranscript, Transcript: &t})
	case c.From != c.Prev && !d.moved:
		r.events.publish(control.Event{Type: control.EventRewind, Transcript: &t})
	}
}

// noteExcluded keeps the list of opted-out files that status and verify show.
func (r *relay) noteExcluded(id tail.FileID, err error) {
	out, ok := errors.AsType[*optedOut](err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok {
		r.excluded[id] = out
	} else if len(r.excluded) > 0 {
		delete(r.excluded, id)
	}
}

// setExcluded notes files that were found to be opted out without being looked at.
func (r *relay) setExcluded(out map[tail.FileID]*optedOut) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.excluded, out)
}

// excludedFiles copies the list of opted-out files, with the reasons.
func (r *relay) excludedFiles() map[tail.FileID]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[tail.FileID]string, len(r.excluded))
	for id, o := range r.excluded {
		out[id] = o.why
	}
	return out
}

// optOutEnded says whether a project that had opted out has not any more, and forgets that it had.
func (r *relay) optOutEnded() bool {
	r.mu.Lock()
	enabled := map[string]bool{}
	for _, o := range r.excluded {
		enabled[o.cwd] = false
	}
	r.mu.Unlock()
	ended := false
	for cwd := range enabled {
		enabled[cwd] = cwd != "" && r.desk.enabled(cwd)
		ended = ended || enabled[cwd]
	}
	if ended {
		r.mu.Lock()
		defer r.mu.Unlock()
		maps.DeleteFunc(r.excluded, func(_ tail.FileID, o *optedOut) bool { return enabled[o.cwd] })
	}
	return ended
}

// cwdWait is how long a file without a working directory in its first records is held back.
const cwdWait = 2 * time.Second

// cwdBytes is how much of such a file may gather before its folder's name must serve.
const cwdBytes = 1 << 20
