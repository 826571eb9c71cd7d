package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// fanSmall and fan are how many segments of level 0, and of a higher level, become one.
	fanSmall = 16
	fan      = 8
	// lease is how long a segment that is being made is left alone without a sign of life.
	lease = 2 * time.Minute
	// batchBytes is how much of a segment one transaction writes, batchPages how many pages one removes.
	batchBytes = 1 << 20
	batchPages = 200
	readPages  = 32
)

// errLost is for a segment that another process has merged or removed.
var errLost = errors.New("the segments changed meanwhile")

// job is segments that become one.
type job struct {
	inputs []segment
	out    segment
	purges map[int64]int64 // by stream: docs of lower rounds must go
}

// Merge merges an owner's segments where there are many, and removes what must not remain. It is harmless to end it at
// any point, and to run it in several processes.
func (x *Index) Merge(ctx context.Context, owner int64) error {
	for ctx.Err() == nil {
		if err := x.sweep(ctx, owner); err != nil {
			return fmt.Errorf("merge the index: %w", err)
		}
		j, err := x.nextJob(ctx, owner)
		if err == nil && j != nil {
			err = x.perform(ctx, j)
		}
		if errors.Is(err, errLost) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("merge the index: %w", err)
		}
		if j == nil {
			return x.sweep(ctx, owner)
		}
	}
	return ctx.Err()
}

// Purge merges for every owner of whom something must not remain.
func (x *Index) Purge(ctx context.Context) error {
	var owners []int64
	err := x.db.Read(ctx, func(d sqlstore.Dialect) (err error) {
		owners, err = sqlstore.List(ctx, d, `SELECT DISTINCT owner FROM gram_purges`, nil, scanID)
		return err
	})
	if err != nil {
		return fmt.Errorf("look for what to remove from the index: %w", err)
	}
	for _, owner := range owners {
		if err := x.Merge(ctx, owner); err != nil {
			return err
		}
	}
	return nil
}

func scanID(row sqlstore.Scanner) (id int64, err error) { return id, row.Scan(&id) }

// Reset removes everything.
func Reset(ctx context.Context, d sqlstore.Dialect) error {
	for _, table := range []string{"gram_segments", "gram_pages", "gram_purges"} {
		if _, err := d.Exec(ctx, `DELETE FROM `+table); err != nil {
			return err
		}
	}
	return nil
}

// nextJob returns what to do next; nil: nothing, or another process does something.
func (x *Index) nextJob(ctx context.Context, owner int64) (j *job, err error) {
	err = x.db.Read(ctx, func(d sqlstore.Dialect) error {
		j, err = x.chooseJob(ctx, d, owner)
		return err
	})
	if err != nil || j == nil {
		return nil, err
	}
	if len(j.inputs) == 0 {
		return nil, x.purged(ctx, owner, j.purges)
	}
	j.out = segment{owner: owner, id: newID(), level: making, until: sqlstore.Micros(time.Now().Add(lease))}
	return j, x.db.Write(ctx, func(d sqlstore.Dialect) error {
		return j.out.insert(ctx, d)
	})
}

func (x *Index) chooseJob(ctx context.Context, d sqlstore.Dialect, owner int64) (*job, error) {
	all, err := segmentsOf(ctx, d, owner)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(s segment) bool { return s.level == making }) {
		return nil, nil //nolint:nilnil // nothing to do
	}
	j := &job{purges: map[int64]int64{}}
	err = d.Query(ctx, `SELECT stream, round FROM gram_purges WHERE owner = ?`, []any{owner},
		func(row sqlstore.Scanner) error {
			var stream, round int64
			err := row.Scan(&stream, &round)
			j.purges[stream] = round
			return err
		})
	if err != nil {
		return nil, err
	}
	byLevel := map[int64][]segment{}
	for _, s := range all {
		byLevel[s.level] = append(byLevel[s.level], s)
	}
	for level := range int64(topLevel) {
		if list := byLevel[level]; len(list) >= fan && (level > 0 || len(list) >= fanSmall) {
			j.inputs = list
			return j, nil
		}
	}
	if len(j.purges) == 0 {
		return nil, nil //nolint:nilnil // nothing to do
	}
	for _, s := range all {
		docs, err := docsOf(ctx, d, s, 0)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(docs, func(x doc) bool { return x.Round < j.purges[x.Stream] }) {
			j.inputs = []segment{s}
			return j, nil
		}
	}
	return j, nil
}

func segmentsOf(ctx context.Context, d sqlstore.Dialect, owner int64) ([]segment, error) {
	return sqlstore.List(ctx, d, `
SELECT id, level, bytes, docs FROM gram_segments WHERE owner = ? AND level >= ? ORDER BY id`, []any{owner, making},
		func(row sqlstore.Scanner) (s segment, err error) {
			s.owner = owner
			return s, row.Scan(&s.id, &s.level, &s.bytes, &s.docs)
		})
}

// purged removes the notes about what is gone now.
func (x *Index) purged(ctx context.Context, owner int64, purges map[int64]int64) error {
	return x.db.Write(ctx, func(d sqlstore.Dialect) error {
		for stream, round := range purges {
			_, err := d.Exec(ctx, `DELETE FROM gram_purges WHERE owner = ? AND stream = ? AND round = ?`, owner, stream, round)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// perform makes the new segment, and replaces the others by it.
func (x *Index) perform(ctx context.Context, j *job) error {
	b := &batch{x: x, s: &j.out}
	err := x.db.Read(ctx, func(d sqlstore.Dialect) error {
		for _, part := range []int{0, turnParts} {
			sources, err := sourcesOf(ctx, d, j, part)
			if err == nil {
				err = merge(sources, newWriter(partOf(part, func(p page) error { return b.add(ctx, p) })))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = b.end(ctx)
	}
	if err == nil {
		err = x.db.Write(ctx, func(d sqlstore.Dialect) error { return j.replace(ctx, d) })
	}
	if err != nil {
		return errors.Join(err, x.removeSegment(ctx, j.out.owner, j.out.id))
	}
	return nil
}

// replace lets searches read the new segment, and not the others any more.
func (j *job) replace(ctx context.Context, d sqlstore.Dialect) error {
	ids := make([]int64, len(j.inputs))
	for i, s := range j.inputs {
		ids[i] = s.id
	}
	n, err := d.Exec(ctx, `UPDATE gram_segments SET level = ? WHERE level >= 0 AND owner = ? AND id IN (`+
		sqlstore.Marks(len(ids))+`)`, append([]any{gone, j.out.owner}, sqlstore.Values(ids)...)...)
	if err != nil {
		return err
	}
	if n != int64(len(ids)) {
		return errLost
	}
	o := &j.out
	level := levelOf(o.bytes)
	if o.docs == 0 {
		level = gone
	}
	n, err = d.Exec(ctx, `UPDATE gram_segments SET level = ?, docs = ?, newest = ?, oldest = ?, bytes = ?, data = ?
WHERE owner = ? AND id = ? AND level = ?`, level, o.docs, o.newest, o.oldest, o.bytes, sqlstore.NotNil(o.data),
		o.owner, o.id, making)
	if err == nil && n != 1 {
		return errLost
	}
	return err
}

// sourcesOf returns the segments of a job, their docs or their turns, without those that count no more.
func sourcesOf(ctx context.Context, d sqlstore.Dialect, j *job, part int) ([]source, error) {
	streams := map[int64]*stream{}
	var out []source
	for _, s := range j.inputs {
		docs, err := docsOf(ctx, d, s, part)
		if err != nil {
			return nil, err
		}
		for i := range docs {
			streams[docs[i].Stream] = nil
		}
		p := &pages{d: d, of: s, part: gramPage + part}
		out = append(out, source{Docs: docs, Next: func() (page, bool, error) { return p.next(ctx) }})
	}
	if err := loadRounds(ctx, d, streams); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Keep = func(x *doc) bool {
			st := streams[x.Stream]
			return st != nil && st.counts(x, x.Last()) && x.Round >= j.purges[x.Stream]
		}
	}
	return out, nil
}

// loadRounds fills in how far streams are derived; those that are gone stay nil.
func loadRounds(ctx context.Context, d sqlstore.Dialect, streams map[int64]*stream) error {
	var ids []int64
	for id := range streams {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for list := range slices.Chunk(ids, maxValues) {
		err := d.Query(ctx, `SELECT s.id, `+derived+` FROM streams s
LEFT JOIN folds p ON p.owner = s.owner AND p.stream = s.id WHERE s.id IN (`+sqlstore.Marks(len(list))+`)`,
			sqlstore.Values(list), func(row sqlstore.Scanner) error {
				var id int64
				var x stream
				err := row.Scan(&id, &x.round, &x.at.Epoch, &x.at.Generation, &x.at.Line)
				streams[id] = &x
				return err
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// docsOf returns all docs of a segment, or all turns.
func docsOf(ctx context.Context, d sqlstore.Dialect, s segment, part int) (out []doc, err error) {
	p := &pages{d: d, of: s, part: docPage + part}
	for {
		page, more, err := p.next(ctx)
		if err != nil || !more {
			return out, err
		}
		docs, err := readDocs(page)
		if err != nil {
			return nil, err
		}
		out = append(out, docs...)
	}
}

// tender merges in the background, one owner at a time. It begins with the first save, so that a program that only
// reads has none.
type tender struct {
	x *Index

	mu     sync.Mutex
	closed bool               // guarded by mu, as is what follows
	due    map[int64]bool     // owners
	cancel context.CancelFunc // ends the goroutine that runs; nil: none does
	ended  chan struct{}      // closed when it has ended
}

// ScheduleMerge queues the segments of the owners of saved texts for merging, if there are many.
func (x *Index) ScheduleMerge(saved []Prepared) {
	t := x.tend
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for _, p := range saved {
		t.due[p.owner] = true
	}
	if t.cancel == nil {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		t.cancel, t.ended = cancel, ended
		go func() {
			defer close(ended)
			defer cancel()
			t.run(ctx)
		}()
	}
}

// run works until nothing is due. What fails is due again with the next save of its owner.
func (t *tender) run(ctx context.Context) {
	for {
		owner, some := t.take()
		if !some {
			return
		}
		_ = t.x.Merge(ctx, owner)
	}
}

func (t *tender) take() (owner int64, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for owner = range t.due {
		delete(t.due, owner)
		return owner, !t.closed
	}
	t.cancel, t.ended = nil, nil
	return 0, false
}

func (t *tender) close() {
	t.mu.Lock()
	t.closed = true
	cancel, ended := t.cancel, t.ended
	t.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}
