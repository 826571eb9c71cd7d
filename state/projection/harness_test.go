package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

const server = "https://one.example"

// plenty is a disk that is never full.
func plenty(string) (free, total uint64, err error) { return 1 << 40, 1 << 41, nil }

// open opens the state at path, closes it at the end, and checks then that memory and file agree.
func open(t testing.TB, opt state.Options) *DB {
	t.Helper()
	return openWith(t, opt, foldCap)
}

// openWith is open with another limit of the bytes of folds.
func openWith(t testing.TB, opt state.Options, foldCap int64) *DB {
	t.Helper()
	if opt.Path == "" {
		opt.Path = filepath.Join(t.TempDir(), "state", "state.db")
	}
	if opt.FreeDisk == nil {
		opt.FreeDisk = plenty
	}
	db := newDB()
	db.foldCap = foldCap
	kit.Must(t, db.open(t.Context(), opt))
	t.Cleanup(func() { closeNow(t, db) })
	return db
}

func closeNow(t testing.TB, db *DB) {
	t.Helper()
	checkMemory(t, db)
	kit.Must(t, db.State.Close())
}

// cursorAt is a cursor after so many lines of ten bytes.
func cursorAt(line int64) tail.Cursor {
	return tail.Cursor{Offset: 10 * line, Line: line, Anchor: uint64(line) * 7, Segment: uint64(line)}
}

func tracked(id tail.FileID, c tail.Cursor) tail.Tracked {
	name := fmt.Sprintf("s%d", id)
	return tail.Tracked{Cursor: c, File: tail.File{
		ID: id, Path: "/r/p/" + name + ".jsonl", Root: "/r", Name: name, Copy: 1,
		Stat: tail.Stat{Device: 1, Inode: uint64(id), Size: c.Offset},
	}}
}

// advance is the step of a file from one line to another, in one batch of so many bytes.
func advance(id tail.FileID, from, to int64, size int) state.Step {
	prev := tail.Cursor{}
	if from > 0 {
		prev = cursorAt(from)
	}
	return state.Step{
		Prev: prev, From: prev, Tracked: tracked(id, cursorAt(to)),
		Routing: state.Routing{Dest: server, Decided: true, Stream: outbox.Stream{
			ID: uint64(id), SessionID: fmt.Sprintf("s%d", id), ProjectHash: "ph", Path: "p/s.jsonl", Cwd: "/home/me", Project: "p",
		}},
		Batches: []outbox.Batch{{
			From:    protocol.Position{Offset: 10 * from, Line: from},
			To:      protocol.Position{Offset: 10 * to, Line: to},
			Entries: int(to - from), Raw: 10 * (to - from), Frame: make([]byte, size),
		}},
	}
}

// commit makes steps durable; none may be left out. It returns the seqs of their batches.
func commit(t testing.TB, db *DB, steps ...state.Step) (seqs []uint64) {
	t.Helper()
	errs, err := db.State.Commit(context.Background(), steps)
	kit.Must(t, errors.Join(append(errs, err)...))
	for i := range steps {
		for _, b := range steps[i].Batches {
			seqs = append(seqs, b.Seq)
		}
	}
	return seqs
}

func settle(t testing.TB, db *DB, stream uint64, seqs ...uint64) {
	t.Helper()
	s := []outbox.Settlement{{Dest: server, Stream: stream, Seqs: seqs}}
	kit.Must(t, db.State.Outbox.Settle(context.Background(), s))
}

func peek(t testing.TB, db *DB, stream, after uint64, max outbox.Limits) outbox.StreamBatches {
	t.Helper()
	return kit.Try(db.State.Outbox.Peek(context.Background(), server, stream, after, max)).Must(t)
}

// dump is the content of the buckets that derivations, attachments and their rows are in.
func dump(t testing.TB, db *DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	kit.Must(t, db.State.View(context.Background(), func(tx *kv.Snapshot) error {
		for _, name := range []string{
			kv.BucketMeta, "files", "outbox", "dead_letters", state.BucketProjections, state.BucketFolds,
			state.BucketCheckpoints, state.BucketNotices, state.BucketDocuments, state.BucketAttachments,
		} {
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

// checkMemory compares what is in memory with the file.
func checkMemory(t testing.TB, db *DB) {
	t.Helper()
	fresh := newDB()
	err := db.State.View(context.Background(), fresh.memory.Load)
	if errors.Is(err, state.ErrClosed) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	kit.Same(t, "memory differs from the file", cmp.Diff(describe(fresh), describe(db)))
}

// describe is what is in memory, in words.
func describe(db *DB) (lines []string) {
	m := db.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	lines = append(lines, fmt.Sprintf("folds %d", m.folds))
	for _, session := range slices.Sorted(maps.Keys(m.notices)) {
		lines = append(lines, fmt.Sprintf("notices of %s %+v", session, m.notices[session]))
	}
	if b := m.budgets; b != nil && len(b.Compactions)+len(b.Models)+len(b.Files) > 0 {
		lines = append(lines, fmt.Sprintf("budgets %+v", *b))
	}
	return lines
}
