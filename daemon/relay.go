package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

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

	mu       sync.Mutex
	excluded map[tail.FileID]*optedOut // files whose project has opted out; guarded by mu
}

// counts is what the relay saw since the daemon started.
type counts struct{ malformed, oversize atomic.Int64 }

func newRelay(db *state.DB, d *desk, exclude []string, log *slog.Logger) *relay {
	types := make(map[string]bool, len(exclude))
	for _, t := range exclude {
		types[t] = true
	}
	return &relay{
		db: db, desk: d, log: log,
		rows:     sync.Pool{New: func() any { return &rows{packer: outbox.NewPacker(), exclude: types} }},
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
	var sum tally
	for i := range chunks {
		facts, result, err := r.desk.decide(ctx, &chunks[i])
		if err != nil {
			return nil, err
		}
		r.noteExcluded(chunks[i].File.ID, result.Err)
		if result.Err != nil {
			results[i] = plain(result)
			continue
		}
		steps = append(steps, r.step(&chunks[i], facts, w))
		at = append(at, i)
		sum.malformed += w.tally.malformed
		sum.oversize += w.tally.oversize
	}
	if len(steps) == 0 {
		return results, nil
	}
	errs, err := r.db.Commit(ctx, steps)
	if err != nil {
		return nil, err
	}
	for i, err := range errs {
		results[at[i]].Err = err
	}
	r.counts.malformed.Add(sum.malformed)
	r.counts.oversize.Add(sum.oversize)
	return results, nil
}

// step turns one chunk into the durable move of its file.
func (r *relay) step(c *tail.Chunk, facts state.Facts, w *rows) state.Step {
	if c.From != c.Prev {
		facts.RewoundTo = c.From.Line
	}
	facts.Stream.ID = uint64(c.File.ID)
	facts.Stream.Path = wirePath(c.File)
	batches := w.build(c, &facts)
	facts.Excluded += w.tally.excluded
	return state.Step{
		Prev: c.Prev, From: c.From, Tracked: c.Tracked, Marks: c.Marks,
		Facts: facts, Batches: batches, Live: c.Live,
	}
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

// optOutEnded says whether a project that had opted out has not any more.
func (r *relay) optOutEnded() bool {
	r.mu.Lock()
	folders := map[string]bool{}
	for _, o := range r.excluded {
		folders[o.cwd] = o.cwd != ""
	}
	r.mu.Unlock()
	for cwd, known := range folders {
		if known && r.desk.enabled(cwd) {
			return true
		}
	}
	return false
}

// cwdWait is how long a file without a working directory in its first records is held back.
const cwdWait = 2 * time.Second

// cwdBytes is how much of such a file may gather before its folder's name must serve.
const cwdBytes = 1 << 20
