package state

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

const server = "https://one.example"

// plenty is a disk that is never full.
func plenty(string) (free, total uint64, err error) { return 1 << 40, 1 << 41, nil }

// open opens the state at path, closes it at the end, and checks then that memory and file agree.
func open(t testing.TB, opt Options) *DB {
	t.Helper()
	if opt.Path == "" {
		opt.Path = filepath.Join(t.TempDir(), "state", "state.db")
	}
	if opt.FreeDisk == nil {
		opt.FreeDisk = plenty
	}
	db := kit.Try(Open(t.Context(), opt)).Must(t)
	t.Cleanup(func() {
		checkIndex(t, db)
		kit.Should(t, db.Close())
	})
	return db
}

func closeNow(t testing.TB, db *DB) {
	t.Helper()
	checkIndex(t, db)
	kit.Must(t, db.Close())
}

func openAt(t testing.TB) (db *DB, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	return open(t, Options{Path: path}), path
}

func reopen(t testing.TB, db *DB, path string) *DB {
	t.Helper()
	closeNow(t, db)
	return open(t, Options{Path: path})
}

// cursorAt is a cursor after so many lines of ten bytes.
func cursorAt(line int64, generation uint32) tail.Cursor {
	return tail.Cursor{Offset: 10 * line, Line: line, Generation: generation, Anchor: uint64(line) * 7, Segment: uint64(line)}
}

func tracked(id tail.FileID, c tail.Cursor) tail.Tracked {
	name := fmt.Sprintf("s%d", id)
	return tail.Tracked{Cursor: c, File: tail.File{ID: id, Path: "/r/p/" + name + ".jsonl", Root: "/r", Name: name, Copy: 1, Stat: tail.Stat{Device: 1, Inode: uint64(id), Size: c.Offset}}}
}

func factsFor(id tail.FileID, dest string) Routing {
	return Routing{Dest: dest, Decided: true, Stream: outbox.Stream{ID: uint64(id), SessionID: fmt.Sprintf("s%d", id), ProjectHash: "ph", Path: "p/s.jsonl", Cwd: "/home/me", Project: "p"}}
}

// batch holds the lines from first up to last as one row with a frame of so many bytes.
func batch(first, last int64, generation uint32, size int) outbox.Batch {
	frame := make([]byte, size)
	for i := range frame {
		frame[i] = byte(rand.IntN(256))
	}
	return outbox.Batch{Generation: generation, From: protocol.Position{Offset: 10 * first, Line: first}, To: protocol.Position{Offset: 10 * last, Line: last},
		Entries: int(last - first), Raw: 10 * (last - first), Frame: frame}
}

// advance is the step of a file from one line to another, in one batch.
func advance(id tail.FileID, from, to int64, size int) Step {
	prev := tail.Cursor{}
	if from > 0 {
		prev = cursorAt(from, 0)
	}
	return Step{Prev: prev, From: prev, Tracked: tracked(id, cursorAt(to, 0)), Routing: factsFor(id, server),
		Marks: []tail.Mark{{Offset: 10 * to, Line: to, Hash: uint64(to)}}, Batches: []outbox.Batch{batch(from, to, 0, size)}}
}

// commit makes steps durable; none may be left out. It answers the seqs given.
func commit(t testing.TB, db *DB, steps ...Step) (seqs []uint64) {
	t.Helper()
	errs := kit.Try(db.Commit(context.Background(), steps)).Must(t)
	for i, e := range errs {
		kit.Require(t, e == nil, "step %d: %v", i, e)
		for _, b := range steps[i].Batches {
			seqs = append(seqs, b.Seq)
		}
	}
	return seqs
}

func settle(t testing.TB, db *DB, stream uint64, seqs ...uint64) {
	t.Helper()
	kit.Must(t, db.Outbox.Settle(context.Background(), []outbox.Settlement{{Dest: server, Stream: stream, Seqs: seqs}}))
}

func peek(t testing.TB, db *DB, stream, after uint64, max outbox.Limits) outbox.StreamBatches {
	t.Helper()
	return kit.Try(db.Outbox.Peek(context.Background(), server, stream, after, max)).Must(t)
}

// dump is the whole content of the file.
func dump(t testing.TB, db *DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	kit.Must(t, db.View(context.Background(), func(tx *kv.Snapshot) error {
		for _, name := range append(bucketNames(), kv.BucketMeta) {
			b := tx.Bucket(name)
			all[name] = fmt.Sprint(b.Sequence())
			err := b.ForEach(func(k, v []byte) error {
				all[name+"/"+string(k)] = string(v)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return all
}

// checkIndex compares what is in memory with what the file says.
func checkIndex(t testing.TB, db *DB) {
	t.Helper()
	if errors.Is(db.Alive(context.Background()), ErrCorrupt) {
		return // its use has ended
	}
	fresh := &memory{&DB{index: newIndex()}}
	err := db.View(context.Background(), fresh.Load)
	if errors.Is(err, ErrClosed) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	kit.Same(t, "memory differs from the file", cmp.Diff(describe(&fresh.db.index), describe(&db.index)))
}

// describe is an index in words.
func describe(x *index) (lines []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	lines = append(lines, fmt.Sprintf("total %+v dead %d %d odd %+v", x.total, x.dead, x.deadSize, x.odd))
	for id, q := range x.queues {
		if q.rows == 0 {
			continue
		}
		text := fmt.Sprintf("dest %s %+v", x.urls[id], q.sums)
		for _, id := range slices.Sorted(maps.Keys(q.streams)) {
			w := q.streams[id]
			text += fmt.Sprintf(" [%d %+v %d-%d at %d]", w.stream, w.sums, w.first, w.last, w.firstAt)
		}
		if q.newest.Len() != len(q.streams) || len(q.oldest) != len(q.streams) {
			text += " orders differ"
		}
		if !slices.IsSortedFunc(q.oldest, func(a, b *waiting) int { return stdcmp.Compare(a.first, b.first) }) {
			text += " oldest is out of order"
		}
		lines = append(lines, text)
	}
	for id, n := range x.files {
		if n != 0 {
			lines = append(lines, fmt.Sprintf("files %s %d", x.urls[id], n))
		}
	}
	slices.Sort(lines)
	return lines
}
