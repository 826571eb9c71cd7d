package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

// coldReturn: what is in cold storage comes back, wholly or of some time, goes on after an interruption, and can be moved
// again. What is lost stays where it is and is counted.
func (s suite) coldReturn(t *testing.T) {
	var left atomic.Int64 // objects until an interruption; below 0: none comes
	left.Store(-1)
	st, dir := s.onFolder(t, store.Opening{Step: func(name string) error {
		if name == "return object" && left.Add(-1) == 0 {
			return errStep
		}
		return nil
	}})
	all := prose(0, 6000, 2000)
	put(t, st, batch("s", all...))
	put(t, st, batch("late", prose(0, 300, 1000)...), func(b *server.Batch) { b.Received = start.Add(time.Hour) })
	moved := cool(t, st)
	had := inFolder(t, dir)
	back := func(since, until time.Time) (server.Returned, error) {
		return st.Return(t.Context(), since, until, func(server.Returned) {})
	}
	none, err := back(start.Add(2*time.Hour), endOfTime)
	kit.Check(t, err == nil && none == (server.Returned{}) && s.local(t, st) == 0,
		"of a time without lines %+v came back: %v", none, err)
	some, err := back(start.Add(time.Minute), endOfTime)
	kit.Check(t, err == nil && some.Objects == 1 && s.local(t, st) == some.Bytes && len(inFolder(t, dir)) == len(had)-1,
		"of the later session %+v came back, %d bytes are in the database: %v", some, s.local(t, st), err)
	left.Store(2)
	kit.Err(t, "interrupted", errStep)(back(start, endOfTime))
	left.Store(-1)
	kit.Must(t, st.Sweep(t.Context())) // which a return that is not interrupted does at its end
	kit.Equal(t, fmt.Sprint("lines that can be read after an interruption, of ", len(all)), dumpOf(t, st, "s"),
		listed(all))
	there := inFolder(t, dir)
	kit.Require(t, len(there) == int(moved.Objects)-2 && len(there) >= 1,
		"after one session and one object %d of %d objects are there", len(there), moved.Objects)
	lost := kit.Try(os.ReadFile(there[0])).Must(t)
	kit.Must(t, os.Remove(there[0]))
	st = s.reopen(t, st)
	if done, err := back(start, endOfTime); err != nil || done.Damaged != 1 || int(done.Objects) != len(there)-1 {
		t.Errorf("with an object lost %+v came back: %v", done, err)
	}
	kit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(there[0]), 0o700), os.WriteFile(there[0], lost, 0o600)))
	st = s.reopen(t, st) // who found it lost remembers that for a while
	done, err := back(start, endOfTime)
	kit.Check(t, err == nil && done.Damaged == 0 && done.Objects == 1 && len(inFolder(t, dir)) == 0 &&
		s.local(t, st) == moved.Bytes, "at last %+v came back, %d objects are there: %v", done, len(inFolder(t, dir)), err)
	kit.Equal(t, fmt.Sprint("lines can be read, want ", len(all)), dumpOf(t, st, "s"), listed(all))
	again := cool(t, st)
	kit.Check(t, again == moved && s.local(t, st) == 0, "moved again: %+v, before %+v", again, moved)
}

// coldSealed: lines that are packed while blocks of their stream move are moved by the next pass.
func (s suite) coldSealed(t *testing.T) {
	var st full
	var packed int64
	st, _ = s.onFolder(t, store.Opening{Step: func(name string) (err error) {
		if name == "dropped what is cold" && packed == 0 {
			packed, err = st.Seal(t.Context(), endOfTime)
		}
		return err
	}})
	put(t, st, batch("s", prose(0, 300, 1000)...))
	put(t, st, batch("s", object(299, "{}")), func(b *server.Batch) { b.Head.Generation, b.Head.RewoundTo = 1, 299 })
	for range 2 {
		kit.Try(st.Cool(t.Context(), endOfTime)).Must(t)
	}
	left := s.local(t, st)
	kit.Check(t, left == 0 && packed == 1, "%d blocks were packed meanwhile; %d bytes stay in the database", packed, left)
}
