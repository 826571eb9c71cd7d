package lines

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// sealRows and sealBytes bound what one transaction packs: lines that arrive do not wait long for it.
	sealRows  = 2000
	sealBytes = 8 * blockSize
)

var (
	errEnough = errors.New("enough")
	errMoved  = errors.New("lines changed while they were packed")
)

// Seal packs hot lines of a generation into blocks, in a transaction that keeps others from writing the stream. Unless
// all are to be packed, what does not fill a block stays hot. It returns how many blocks were made, and whether there
// may be more to do.
func (x *Lines) Seal(ctx context.Context, d sqlstore.Dialect, at Place, all bool) (made int, more bool, err error) {
	runs, more, err := x.sealable(ctx, d, at)
	if err != nil {
		return 0, false, err
	}
	for i, run := range runs {
		pieces := cutBlock(run)
		// The next lines of the stream belong to the end of the last run, also of one that was cut off here.
		if last := i == len(runs)-1; last && (more || !all) {
			pieces = full(run)
		}
		blocks, err := x.build(pieces)
		if err != nil {
			return made, false, err
		}
		if err := x.step("write blocks"); err != nil {
			return made, false, err
		}
		if err := x.Insert(ctx, d, at, blocks); err != nil {
			return made, false, err
		}
		for _, b := range blocks {
			if err := x.unrow(ctx, d, at, b); err != nil {
				return made, false, fmt.Errorf("remove packed lines: %w", err)
			}
		}
		made += len(blocks)
	}
	return made, more && made > 0, x.step("commit blocks")
}

// unrow removes rows that are packed now.
func (x *Lines) unrow(ctx context.Context, d sqlstore.Dialect, at Place, b Block) error {
	if err := x.step("remove packed lines"); err != nil {
		return err
	}
	n, err := d.Exec(ctx, `DELETE FROM lines`+ofPlace+` AND line >= ? AND line <= ?`, at.args(b.First, b.Last)...)
	if err == nil && n != b.Lines {
		err = errMoved
	}
	return err
}

// full returns the pieces of lines that fill a block.
func full(lines []Line) (out [][]Line) {
	from, sum := 0, 0
	for i, l := range lines {
		if sum += len(l.Raw); sum >= blockSize {
			out, from, sum = append(out, lines[from:i+1]), i+1, 0
		}
	}
	return out
}

// sealable returns hot lines that are in no block: runs between which there are blocks. more says that there are
// others.
func (x *Lines) sealable(ctx context.Context, d sqlstore.Dialect,
	at Place) (runs [][]Line, more bool, err error) {
	behind, rows, size := int64(-2), 0, 0
	err = d.Query(ctx, `SELECT line, kind, received, raw, behind FROM (
  SELECT l.line, l.kind, l.received, l.raw, `+before+` AS behind FROM lines l
  WHERE l.owner = ? AND l.stream = ? AND l.epoch = ? AND l.generation = ?) hot
WHERE behind < line ORDER BY line LIMIT ?`, append([]any{at.Owner, at.Stream}, at.args(sealRows)...),
		func(row sqlstore.Scanner) error {
			var l Line
			var kind, last int64
			if err := row.Scan(&l.Index, &kind, &l.Received, &l.Raw, &last); err != nil {
				return err
			}
			l.Kind = uint8(kind)
			if last != behind {
				runs, behind = append(runs, nil), last
			}
			run := &runs[len(runs)-1]
			*run = append(*run, l)
			if rows, size = rows+1, size+len(l.Raw); size >= sealBytes {
				return errEnough
			}
			return nil
		})
	enough := errors.Is(err, errEnough)
	if err != nil && !enough {
		return nil, false, fmt.Errorf("read hot lines: %w", err)
	}
	return runs, enough || rows == sealRows, nil
}

// Hot is a generation with hot lines.
type Hot struct {
	Place   Place
	Version int64 // of the stream
	Last    int64 // when it was last heard of, Unix microseconds
}

// NextHot returns the first generation with hot lines behind another one. ok is false if there is none.
func (x *Lines) NextHot(ctx context.Context, d sqlstore.Dialect, after Place) (h Hot, ok bool, err error) {
	err = d.Query(ctx, `
SELECT s.owner, s.id, l.epoch, l.generation, s.version, s.last_received
FROM (SELECT owner, stream, epoch, generation FROM lines WHERE (owner, stream, epoch, generation) > (?, ?, ?, ?)
  ORDER BY owner, stream, epoch, generation, line LIMIT 1) l
JOIN streams s ON s.owner = l.owner AND s.id = l.stream`,
		[]any{after.Owner, after.Stream, after.Epoch, after.Generation},
		func(row sqlstore.Scanner) error {
			ok = true
			p := &h.Place
			return row.Scan(&p.Owner, &p.Stream, &p.Epoch, &p.Generation, &h.Version, &h.Last)
		})
	return h, ok, sqlstore.Wrap(err, "look for hot lines")
}

// Size returns how many bytes hot lines of a generation have.
func (x *Lines) Size(ctx context.Context, d sqlstore.Dialect, at Place) (n int64, err error) {
	n, err = sqlstore.Number(ctx, d, `SELECT CAST(coalesce(sum(length(raw)), 0) AS bigint) FROM lines`+ofPlace,
		at.args()...)
	return n, sqlstore.Wrap(err, "measure hot lines")
}

// errBusy says that another worker has a stream at the moment, or that it is gone. It is packed at the next pass.
var errBusy = errors.New("another worker has the stream")

// Sealer goes through all generations with hot lines. It remembers those that it could not make smaller.
type Sealer struct {
	db    sqlstore.Writer
	lines *Lines
	mu    sync.Mutex
	seen  map[Place]look // guarded by mu
}

// look is a generation as it was left.
type look struct {
	version int64 // of the stream
	all     bool  // even what does not fill a block was packed
}

// NewSealer returns a sealer that has seen nothing.
func NewSealer(db sqlstore.DB, l *Lines) *Sealer {
	return &Sealer{db: sqlstore.Writer{DB: db, How: sqlstore.Lazy | sqlstore.Erase | sqlstore.Patient}, lines: l}
}

// Seal implements server.Sealer. A stream that is being written, or packed by another server, is left for later. What
// fails for one stream ends nothing for the others.
func (s *Sealer) Seal(ctx context.Context, before time.Time) (blocks int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[Place]look{}
	var at Place
	var failed failures
	for {
		h, ok, err := s.lines.NextHot(ctx, s.db, at)
		if err != nil || !ok {
			s.seen = seen
			return blocks, failed.with(err)
		}
		at = h.Place
		now := look{h.Version, h.Last < sqlstore.Micros(before)}
		if was, ok := s.seen[at]; ok && was.version == now.version && (was.all || !now.all) {
			seen[at] = was
			continue
		}
		n, err := s.one(ctx, at, now.all)
		blocks += n
		if errors.Is(err, errBusy) {
			continue // not seen: what is left of it would stay as it is until its next line
		}
		if err != nil {
			failed.add(fmt.Errorf("pack stream %d: %w", at.Stream, err))
			continue
		}
		seen[at] = now
	}
}

func (s *Sealer) one(ctx context.Context, at Place, all bool) (blocks int64, err error) {
	if !all {
		size, err := s.lines.Size(ctx, s.db, at)
		if err != nil || size < blockSize {
			return 0, err
		}
	}
	for more := true; more; {
		var made int
		if made, more, err = s.seal(ctx, at, all); err != nil {
			return blocks, err
		}
		blocks += int64(made)
		if err := s.lines.step("committed blocks"); err != nil {
			return blocks, err
		}
	}
	return blocks, nil
}

// seal packs some lines of a generation in a transaction.
func (s *Sealer) seal(ctx context.Context, at Place, all bool) (made int, more bool, err error) {
	err = s.db.Write(ctx, func(d sqlstore.Dialect) error {
		made, more = 0, false
		free := false
		err := d.SkipLocked(ctx, `SELECT 1 FROM streams WHERE owner = ? AND id = ?`, []any{at.Owner, at.Stream},
			func(sqlstore.Scanner) error { free = true; return nil })
		if err == nil && !free {
			err = errBusy
		}
		if err != nil {
			return err
		}
		made, more, err = s.lines.Seal(ctx, d, at, all)
		return err
	})
	return made, more, err
}

// groupBytes bounds one transaction: enough that a backlog costs few syncs, little enough that a line that was just
// written does not wait long behind it.
const groupBytes = 8 << 20

// Job is one batch on its way into a transaction. Done is sent exactly one answer.
type Job struct {
	Batch  *server.Batch
	Blocks []Block // all lines of the batch, packed; nil: they stay hot
	Bytes  int
	Done   chan error
}

// Batches yields the batches of jobs.
func Batches(jobs []*Job) iter.Seq[*server.Batch] {
	return func(yield func(*server.Batch) bool) {
		for _, j := range jobs {
			if !yield(j.Batch) {
				return
			}
		}
	}
}

// Queue is where batches wait that will share a transaction: those that come while others are written.
type Queue struct {
	// Lead has space for as many tokens as groups may be written at once.
	Lead chan struct{}

	mu      sync.Mutex
	pending []*Job // batches not taken yet; guarded by mu
}

// NewQueue returns an empty queue for that many writers at once.
func NewQueue(writers int) Queue { return Queue{Lead: make(chan struct{}, writers)} }

// Put queues a batch and returns its answer. If a writer's slot is free, the caller writes all queued batches as one
// group with write, which answers every job. blocks are the batch's lines, packed; nil: they become rows.
func (q *Queue) Put(ctx context.Context, b *server.Batch, blocks []Block, write func(group []*Job)) error {
	j := &Job{Batch: b, Blocks: blocks, Done: make(chan error, 1)}
	for _, l := range b.Lines {
		j.Bytes += len(l.Raw)
	}
	q.mu.Lock()
	q.pending = append(q.pending, j)
	q.mu.Unlock()
	for {
		select {
		case err := <-j.Done:
			return err
		default:
		}
		select {
		case err := <-j.Done:
			return err
		case q.Lead <- struct{}{}:
			if q.lead(j, write) {
				return <-j.Done // to look for a free slot again and again meanwhile would cost more than the writing
			}
		case <-ctx.Done():
			if q.withdraw(j) {
				return ctx.Err()
			}
			return <-j.Done // being written: its bytes are in use until there is an answer
		}
	}
}

// lead writes the next group, unless j was taken by another caller. It reports whether j was taken.
func (q *Queue) lead(j *Job, write func(group []*Job)) bool {
	defer func() { <-q.Lead }()
	group, done := []*Job(nil), false
	if q.waits(j) {
		group = q.Take()
	}
	if len(group) == 0 {
		return true // another caller took it meanwhile
	}
	defer func() { // behind a panic too, no job of the group waits on
		for _, j := range group {
			if done {
				break
			}
			select {
			case j.Done <- errPanicked:
			default: // it has its answer
			}
		}
	}()
	write(group)
	done = true
	return !q.waits(j)
}

// errPanicked answers jobs that share a group with a panic, which goes on: the server of its caller recovers from it.
var errPanicked = errors.New("a programming error ended the transaction")

// waits reports whether a job is not taken yet.
func (q *Queue) waits(j *Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Contains(q.pending, j)
}

// withdraw removes a job that is not taken yet.
func (q *Queue) withdraw(j *Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.pending, j)
	if i < 0 {
		return false
	}
	q.pending = slices.Delete(q.pending, i, i+1)
	return true
}

// Take removes the oldest pending jobs, up to groupBytes but at least one.
func (q *Queue) Take() []*Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.pending) && (n == 0 || bytes+q.pending[n].Bytes <= groupBytes) {
		bytes += q.pending[n].Bytes
		n++
	}
	group := slices.Clone(q.pending[:n])
	q.pending = slices.Delete(q.pending, 0, n)
	return group
}

// AnswerAll sends the result to every job of a group.
func AnswerAll(group []*Job, err error) {
	for _, j := range group {
		j.Done <- err
	}
}
