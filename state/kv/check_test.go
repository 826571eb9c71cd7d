package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
)

// filled makes a file with a few pages of every kind, and answers its path.
func filled(t *testing.T) string {
	t.Helper()
	s, path := openAt(t)
	for i, key := range names("row", 300) {
		put(t, s, i*20, key)
	}
	closeNow(t, s)
	return path
}

// usedBytes reads the part of a state that has pages; bbolt makes the file longer.
func usedBytes(t *testing.T, path string) []byte {
	t.Helper()
	f := kit.Try(os.Open(path)).Must(t)
	defer f.Close()
	m := kit.Try(newestMeta(f)).Must(t)
	b := make([]byte, m.pages*m.pageSize)
	kit.Try(f.ReadAt(b, 0)).Must(t)
	return b
}

// Each rule of the check is broken in turn, where bbolt itself might not mind.
func TestCheckRefuses(t *testing.T) {
	path := filled(t)
	whole := usedBytes(t, path)
	n := binary.NativeEndian
	branch := 0 // a page that points to others
	for at := 2 * 4096; at < len(whole) && branch == 0; at += 4096 {
		p := whole[at:]
		is := n.Uint64(p) == uint64(at/4096) && n.Uint16(p[8:]) == flagBranch && n.Uint16(p[10:]) > 2
		if is && checkReaches(t, whole, at) {
			branch = at
		}
	}
	kit.Require(t, branch != 0, "no branch page in the sample")
	for what, damage := range map[string]func(p []byte){
		"it is used twice":           func(p []byte) { copy(p[32+8:32+16], p[16+8:16+16]) },
		"it ends outside the file":   func(p []byte) { n.PutUint32(p[12:], 1<<31) },
		"it lies outside the file":   func(p []byte) { n.PutUint64(p[16+8:], 1<<40) },
		"it has another number":      func(p []byte) { n.PutUint64(p, 1) },
		"its kind is unknown":        func(p []byte) { n.PutUint16(p[8:], 3) },
		"it has too many elements":   func(p []byte) { n.PutUint16(p[10:], 1<<15) },
		"it branches to nothing":     func(p []byte) { n.PutUint16(p[10:], 0) },
		"an element lies outside it": func(p []byte) { n.PutUint32(p[16+4:], 900); n.PutUint32(p[16:], 4000) },
		"its keys are out of order":  func(p []byte) { p[16+n.Uint32(p[16:])] = 0xff },
	} {
		b := append([]byte(nil), whole...)
		damage(b[branch : branch+4096])
		err := checkBytes(t, b)
		kit.Check(t, errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), what), "%s: %v", what, err)
	}
}

// checkReaches says whether a page is in use: damage to it is seen.
func checkReaches(t *testing.T, whole []byte, at int) bool {
	t.Helper()
	b := append([]byte(nil), whole...)
	b[at] ^= 1
	return checkBytes(t, b) != nil
}

func checkBytes(t *testing.T, b []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged.db")
	kit.Must(t, os.WriteFile(path, b, 0o600))
	return checkFile(path)
}

// The check of the pages knows bbolt's format: what bbolt writes must pass, whatever its shape.
func TestCheckPassesWhatBboltWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "any.db")
	b, _, err := openBolt(path, 0)
	kit.Must(t, err)
	defer b.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		kit.Must(t, b.Update(func(tx *bbolt.Tx) error {
			top, err := tx.CreateBucketIfNotExists([]byte{byte(round % 3)})
			if err != nil {
				return err
			}
			inner, err := top.CreateBucketIfNotExists([]byte("inner"))
			if err != nil {
				return err
			}
			for range 200 {
				key := make([]byte, 1+rnd.IntN(300))
				key[0] = byte(rnd.IntN(8))
				bucket := []*bbolt.Bucket{top, inner}[rnd.IntN(2)]
				if rnd.IntN(3) == 0 {
					k, _ := bucket.Cursor().Seek(key)
					if k != nil && string(k) != "inner" {
						if err := bucket.Delete(append([]byte(nil), k...)); err != nil {
							return err
						}
					}
				} else if err := bucket.Put(key, make([]byte, rnd.IntN(1+rnd.IntN(9000)))); err != nil {
					return err
				}
			}
			return nil
		}))
		err := checkFile(path)
		kit.Require(t, err == nil, "round %d: %v", round, err)
	}
}

func TestCheck(t *testing.T) {
	path := filled(t)
	kit.Err(t, "a whole state", nil)(Check(t.Context(), path))
	kit.Err(t, "no state", fs.ErrNotExist)(Check(t.Context(), filepath.Join(t.TempDir(), "none")))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := Check(over, path)
	kit.Check(t, errors.Is(err, context.Canceled) && !errors.Is(err, ErrCorrupt), "no time: %v", err)
	kit.Must(t, os.WriteFile(path+suffixBroken, []byte("page 7: gone\n"), 0o600))
	err = Check(t.Context(), path)
	kit.Check(t, errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), "page 7: gone"), "found while in use: %v", err)
	kit.Must(t, os.Remove(path+suffixBroken))
	b := usedBytes(t, path)
	clear(b[8192:])
	kit.Must(t, os.WriteFile(path, b, 0o600))
	kit.Err(t, "pages zeroed", ErrCorrupt)(Check(t.Context(), path))
}

// A state that is written to at the same time is whole, and its writer waits for nobody.
func TestCheckInUse(t *testing.T) {
	path := filled(t)
	s := open(t, Options{Path: path})
	var writing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer writing.Wait()
	defer stop()
	wrote := make(chan struct{}, 1)
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := s.putRows(ctx, 300, fmt.Sprintf("more%d", i)); err != nil && ctx.Err() == nil {
				t.Errorf("commit: %v", err)
				return
			}
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
	})
	for range 300 {
		<-wrote
		err := Check(t.Context(), path)
		kit.Require(t, err == nil, "while it is written to: %v", err)
	}
}

// Being alive costs no write, and is not claimed while a transaction hangs or after the end.
func TestAlive(t *testing.T) {
	path := t.TempDir() + "/state.db"
	s := open(t, Options{Path: path})
	before := kit.Try(os.Stat(path)).Must(t)
	was := lastTx(t, s)
	for range 10 {
		kit.Must(t, s.Alive(t.Context()))
	}
	after, err := os.Stat(path)
	kit.Check(t, err == nil && after.ModTime().Equal(before.ModTime()) && lastTx(t, s) == was, "it wrote: %v", err)
	s.group.write.Lock() // as a transaction that hangs holds it
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- s.Alive(t.Context()) }()
	waitFor(t, "the first", func() bool { return s.group.queued() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	go func() { second <- s.Alive(ctx) }()
	err = <-second
	kit.Check(t, errors.Is(err, context.DeadlineExceeded), "behind one that hangs: %v", err)
	select {
	case err := <-first:
		t.Errorf("answered while the file hangs: %v", err)
	default:
	}
	s.group.write.Unlock()
	kit.Should(t, <-first)
	kit.Must(t, s.Close())
	kit.Err(t, "after Close", ErrClosed)(s.Alive(t.Context()))
}

// later begins an update that waits for others, and returns when it is queued.
func later(ctx context.Context, t *testing.T, s store, now <-chan struct{}, key string) (result <-chan error) {
	t.Helper()
	before, done := s.group.queued(), make(chan error, 1)
	go func() {
		done <- s.UpdateLater(ctx, 1, now, func(tx *Tx) error {
			tx.Changes(s.owner).(*changes).put[key] = 1
			return tx.Put("put row", tx.Bucket(rows), []byte(key), value(key, 1))
		})
	}()
	waitFor(t, "it to queue", func() bool { return s.group.queued() == before+1 })
	return done
}

// TestLater: what may wait shares the next transaction of any caller, and has one of its own when it must not wait
// any longer.
func TestLater(t *testing.T) {
	s := open(t, Options{})
	never, first := make(chan struct{}), lastTx(t, s)
	one, two := later(t.Context(), t, s, never, "1"), later(t.Context(), t, s, never, "2")
	put(t, s, 1, "3")
	if err := errors.Join(<-one, <-two); err != nil || lastTx(t, s) != first+1 || len(s.held()) != 3 {
		t.Errorf("%v; %d rows in %d transactions", err, len(s.held()), lastTx(t, s)-first)
	}
	now := make(chan struct{})
	one, two = later(t.Context(), t, s, now, "4"), later(t.Context(), t, s, never, "5")
	close(now)
	if err := errors.Join(<-one, <-two); err != nil || lastTx(t, s) != first+2 || len(s.held()) != 5 {
		t.Errorf("hastened: %v; %d rows in %d transactions", err, len(s.held()), lastTx(t, s)-first)
	}
	checkMemory(t, s)
}

// TestLaterBehindOthers: a caller that waits for others does not lead those that came while another led, and is not
// left behind when it must not wait any longer.
func TestLaterBehindOthers(t *testing.T) {
	for _, hastened := range []bool{false, true} {
		g := newGate()
		s := open(t, Options{Fault: g.fault})
		first := make(chan error, 1)
		go func() { first <- s.putRows(t.Context(), 1, "1") }()
		<-g.reached
		now := make(chan struct{})
		waits := later(t.Context(), t, s, now, "2")
		if hastened {
			close(now)
			waitFor(t, "it to hasten", func() bool {
				s.group.mu.Lock()
				defer s.group.mu.Unlock()
				return !s.group.waiting[0].later
			})
		}
		close(g.open)
		kit.Must(t, <-first)
		if !hastened {
			waitFor(t, "nobody to lead", func() bool {
				s.group.mu.Lock()
				defer s.group.mu.Unlock()
				return !s.group.busy
			})
			kit.Equal(t, "rows: it led", len(s.held()), 1)
			close(now)
		}
		if err := <-waits; err != nil || len(s.held()) != 2 {
			t.Errorf("hastened %t: %v, %d rows", hastened, err, len(s.held()))
		}
	}
}

// TestLaterGivesUp: while it waits for others it can be ended, and has done nothing then.
func TestLaterGivesUp(t *testing.T) {
	s := open(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	waits := later(ctx, t, s, make(chan struct{}), "1")
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) || len(s.held()) != 0 {
		t.Errorf("%v, %d rows", err, len(s.held()))
	}
	waits = later(t.Context(), t, s, make(chan struct{}), "2")
	s.fail(ErrFailed)
	err := <-waits
	kit.Check(t, errors.Is(err, ErrFailed), "%v", err)
}

// What was removed is gone from the file too once it was scrubbed, and everything else is as it was.
func TestScrub(t *testing.T) {
	s, path := openAt(t)
	put(t, s, 10, "a", "what nobody is to read")
	kit.Must(t, s.deleteRows(t.Context(), "what nobody is to read"))
	want := dump(t, s)
	holds := func() bool {
		text := kit.Try(os.ReadFile(path)).Must(t)
		return bytes.Contains(text, []byte("nobody is to read"))
	}
	kit.Require(t, holds() && !s.compactionDue(), "removed already, or about to be")
	stop := run(t, s)
	s.Scrub()
	waitFor(t, "the text to be gone", func() bool { return !holds() })
	stop()
	if diff := cmp.Diff(want, dump(t, s)); diff != "" || s.compactionDue() {
		t.Errorf("and then: due %v, %s", s.compactionDue(), diff)
	}
}

// A disk without space for a second file, and one that fails, leave the file as it is.
func TestScrubWithoutRoom(t *testing.T) {
	s := open(t, Options{FreeDisk: func(string) (uint64, uint64, error) { return 1 << 10, 1 << 30, nil }})
	if s.Scrub(); s.compactionDue() {
		t.Error("it would fill the disk")
	}
	broken := open(t, Options{Fault: func(step string) error { return kit.If[error](step == "compact copy", errInjected, nil) }})
	broken.Scrub()
	broken.maintain(t.Context(), true)
	kit.Check(t, !broken.compactionDue(), "tried for ever")
}

// What PutMeta stored outlives a restart and a compaction, and can be removed.
func TestMeta(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	failing := false
	fault := func(step string) error { return kit.If[error](failing && step == "put meta", errInjected, nil) }
	s := open(t, Options{Path: path, Fault: fault})
	check := func(want []byte) {
		t.Helper()
		got, err := s.Meta(t.Context(), "pause")
		kit.Check(t, err == nil && bytes.Equal(got, want) && (got == nil) == (want == nil), "stored %q %v, want %q", got,
			err, want)
	}
	store := func(value []byte) {
		t.Helper()
		kit.Must(t, s.PutMeta(t.Context(), "pause", value))
	}
	check(nil)
	store(nil)
	store([]byte{})
	check([]byte{})
	store([]byte("until noon"))
	failing = true
	err := s.PutMeta(t.Context(), "pause", []byte("never"))
	kit.Check(t, err != nil, "a write that failed is said to be durable")
	store([]byte("until noon")) // nothing to write: nothing to fail
	failing = false
	kit.Must(t, s.Compact(t.Context()))
	closeNow(t, s)
	s = open(t, Options{Path: path, Fault: fault})
	check([]byte("until noon"))
	store(nil)
	check(nil)
}
