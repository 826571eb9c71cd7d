package state

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// filled makes a state with a few pages of every kind, and answers its path.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, Options{Path: path})
	var steps []Step
	for id := range tail.FileID(60) {
		steps = append(steps, advance(id+1, 0, 5, 300), advance(id+1, 5, 6, int(id)*200))
	}
	seqs := commit(t, db, steps...)
	dead := outbox.DeadLetter{Batch: batch(0, 1, 0, 10)}
	dead.Batch.Seq = seqs[0]
	if err := db.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 1, Seqs: seqs[:1], Dead: []outbox.DeadLetter{dead}}}); err != nil {
		t.Fatal(err)
	}
	closeNow(t, db)
	return path
}

// usedBytes reads the part of a state that holds anything; bbolt makes the file longer.
func usedBytes(t *testing.T, path string) []byte {
	t.Helper()
	const page = 4096
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(b, "\x00"))
	return b[:min(len(b), (used+page-1)/page*page)]
}

// use does with a state what a daemon does, and answers the first thing wrong with it.
func use(t *testing.T, db *DB) error {
	t.Helper()
	if _, err := db.Files.Load(t.Context()); err != nil {
		return err
	}
	for id := range tail.FileID(61) {
		if _, err := db.Files.Marks(t.Context(), id); err != nil {
			return err
		}
		if _, err := db.Outbox.Peek(t.Context(), server, uint64(id), 0, outbox.Limits{}); err != nil {
			return err
		}
	}
	_, err := db.Commit(t.Context(), []Step{advance(1000, 0, 1, 1)})
	return err
}

func TestDamagedFileIsSetAside(t *testing.T) {
	tests := []struct {
		name   string
		damage func(b []byte) []byte
	}{
		{"both roots flipped", func(b []byte) []byte { b[40] ^= 1; b[4096+40] ^= 1; return b }},
		{"all pages but the roots zeroed", func(b []byte) []byte { clear(b[8192:]); return b }},
		{"cut in half", func(b []byte) []byte { return b[:len(b)/2/4096*4096] }},
		{"cut to a page", func(b []byte) []byte { return b[:4096] }},
		{"zeroed", func(b []byte) []byte { clear(b); return b }},
		{"empty", func([]byte) []byte { return nil }},
		{"foreign", func([]byte) []byte { return []byte("SQLite format 3\x00" + strings.Repeat("x", 10000)) }},
		{"leaf pages shuffled", func(b []byte) []byte {
			for at := 8192; at+8192 <= len(b); at += 8192 {
				page := append([]byte(nil), b[at:at+4096]...)
				copy(b[at:], b[at+4096:at+8192])
				copy(b[at+4096:], page)
			}
			return b
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filled(t)
			b := usedBytes(t, path)
			if err := os.WriteFile(path, tt.damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			db := open(t, Options{Path: path})
			n := db.Advice()
			if len(n) != 1 || n[0].Kind != "state_corrupt" || !strings.Contains(n[0].Text, ".corrupt-") {
				t.Errorf("notices %+v", n)
			}
			if err := use(t, db); err != nil {
				t.Error(err)
			}
			if aside, _ := filepath.Glob(path + ".corrupt-*"); len(aside) != 1 {
				t.Errorf("set aside: %v", aside)
			}
		})
	}
}

// One byte anywhere: the state either does not notice, for nothing is kept there, or is set aside, at once or at the
// next start. It never panics, and never answers other bytes than it was given.
func TestAnyFlippedByte(t *testing.T) {
	path := filled(t)
	whole := usedBytes(t, path)
	clean := open(t, Options{Path: path})
	want := dump(t, clean)
	closeNow(t, clean)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var atOpen, later, unseen int
	for range 400 {
		at, bit := rnd.IntN(len(whole)), byte(1)<<rnd.IntN(8)
		b := append([]byte(nil), whole...)
		b[at] ^= bit
		path := filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(t.Context(), Options{Path: path, FreeDisk: plenty})
		if err != nil {
			t.Fatalf("byte %d bit %d: %v", at, bit, err)
		}
		switch {
		case len(db.Advice()) > 0:
			atOpen++
		case use(t, db) != nil:
			later++
			if _, err := os.Stat(path + ".damaged"); err != nil {
				t.Errorf("byte %d bit %d: no word for the next start", at, bit)
			}
		default:
			unseen++
			compareKept(t, at, want, dump(t, db))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seen at open %d, later %d, unseen %d", atOpen, later, unseen)
	if atOpen == 0 || later == 0 {
		t.Error("the damage was not where it was meant to be")
	}
}

// compareKept compares the rows of outbox and files; a mark has no checksum, for one that is wrong costs a rewind.
func compareKept(t *testing.T, at int, want, got map[string]string) {
	t.Helper()
	for k, v := range want {
		if (strings.HasPrefix(k, "outbox/") || strings.HasPrefix(k, "files/")) && got[k] != v {
			t.Errorf("byte %d: %q is another", at, k)
		}
	}
}

// A frame that rotted is found when it is read: Run ends, and the next Open begins anew.
func TestDamageFoundInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, Options{Path: path})
	s := advance(1, 0, 1, 9000)
	commit(t, db, s)
	epoch := db.Epoch()
	closeNow(t, db)
	b, _ := os.ReadFile(path)
	i := strings.Index(string(b), string(s.Batches[0].Frame))
	b[i+5000] ^= 4
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db = open(t, Options{Path: path})
	ended := make(chan error, 1)
	go func() { ended <- db.Run(t.Context()) }()
	if _, err := db.Outbox.Peek(t.Context(), server, 1, 0, outbox.Limits{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("peek: %v", err)
	}
	if err := <-ended; !errors.Is(err, ErrCorrupt) {
		t.Errorf("run: %v", err)
	}
	closeNow(t, db)
	db = open(t, Options{Path: path})
	if len(db.Advice()) != 1 || db.Epoch() == epoch || len(db.Outbox.Destinations()) != 0 {
		t.Errorf("%+v, epoch %s", db.Advice(), db.Epoch())
	}
}
