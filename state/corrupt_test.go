package state

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// filled makes a state with a few pages of every kind, and answers its path.
func filled(t *testing.T) string {
	t.Helper()
	db, path := openAt(t)
	var steps []Step
	for id := range tail.FileID(60) {
		steps = append(steps, advance(id+1, 0, 5, 300), advance(id+1, 5, 6, int(id)*200))
	}
	seqs := commit(t, db, steps...)
	dead := outbox.DeadLetter{Batch: batch(0, 1, 0, 10)}
	dead.Batch.Seq = seqs[0]
	kit.Must(t, db.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 1, Seqs: seqs[:1], Dead: []outbox.DeadLetter{dead}}}))
	closeNow(t, db)
	return path
}

// usedBytes reads the part of a state that holds anything; bbolt makes the file longer.
func usedBytes(t *testing.T, path string) []byte {
	t.Helper()
	const page = 4096
	b := kit.Try(os.ReadFile(path)).Must(t)
	used := len(bytes.TrimRight(b, "\x00"))
	return b[:min(len(b), (used+page-1)/page*page)]
}

// use does with a state what a daemon does, and answers the first thing wrong with it.
func use(t *testing.T, db *DB) error {
	t.Helper()
	if err := useRows(t, db); err != nil {
		return err
	}
	_, err := db.Commit(t.Context(), []Step{advance(1000, 0, 1, 1)})
	return err
}

// useRows reads what a daemon reads.
func useRows(t *testing.T, db *DB) error {
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
	return nil
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
			kit.Must(t, os.WriteFile(path, tt.damage(b), 0o600))
			db := open(t, Options{Path: path})
			n := db.Advice()
			kit.Check(t, len(n) == 1 && n[0].Kind == "state_corrupt" && strings.Contains(n[0].Text, ".corrupt-"),
				"notices %+v", n)
			kit.Should(t, use(t, db))
			aside, _ := filepath.Glob(path + ".corrupt-*")
			kit.Check(t, len(aside) == 1, "set aside: %v", aside)
		})
	}
}

// One bit anywhere: the state either does not notice, for nothing is kept there, or is set aside, at once or at the
// next start. It never panics, refuses to start, or answers other rows than it was given.
func TestAnyFlippedByte(t *testing.T) {
	path := filled(t)
	whole := usedBytes(t, path)
	roots := rootsOf(t, whole)
	t.Run("seeds", func(t *testing.T) {
		for _, seed := range []uint64{
			13798469413047143649, // the number of elements of a page of files
			896908492532970290,   // the number of the schema
		} {
			flipBytes(t, whole, roots, seed)
		}
	})
	t.Run("places", func(t *testing.T) {
		mark := bytes.Index(whole, append([]byte("schema\x00\x00\x00"), schemaVersion))
		kit.Require(t, mark >= 0, "no schema in the sample")
		for bit := range 8 {
			for at := range len("schema") + 4 {
				flipByte(t, whole, roots, mark+at, 1<<bit)
			}
		}
	})
	t.Run("anywhere", func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		seen := flipBytes(t, whole, roots, seed)
		kit.Check(t, seen["at open"] != 0 && seen["later"] != 0, "the damage was not where it was meant to be: %v", seen)
	})
}

// flipBytes flips bits in many places, each in a state of its own.
func flipBytes(t *testing.T, whole []byte, roots []map[string]string, seed uint64) map[string]int {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]int{}
	for range 400 {
		seen[flipByte(t, whole, roots, rnd.IntN(len(whole)), byte(1)<<rnd.IntN(8))]++
	}
	t.Logf("seed %d: seen %v", seed, seen)
	return seen
}

// flipByte answers when the damage was seen.
func flipByte(t *testing.T, whole []byte, roots []map[string]string, at int, bit byte) string {
	t.Helper()
	b := bytes.Clone(whole)
	b[at] ^= bit
	path := filepath.Join(t.TempDir(), "state.db")
	kit.Must(t, os.WriteFile(path, b, 0o600))
	db, err := Open(t.Context(), Options{Path: path, FreeDisk: plenty})
	kit.Require(t, err == nil, "byte %d bit %d: %v", at, bit, err)
	defer func() {
		kit.Should(t, db.Close())
		kit.Should(t, os.Remove(path))
	}()
	if len(db.Advice()) > 0 {
		return "at open"
	}
	before := dump(t, db)
	touch := useRows
	if at%8 == 0 { // a commit waits for the disk
		touch = use
	}
	if touch(t, db) != nil {
		kit.Err(t, fmt.Sprintf("byte %d bit %d: no word for the next start", at, bit), nil)(os.Stat(path + ".damaged"))
		return "later"
	}
	if !slices.ContainsFunc(roots, func(root map[string]string) bool { return maps.Equal(root, before) }) {
		t.Errorf("byte %d bit %d: other rows: %s", at, bit, cmp.Diff(roots[0], before))
	}
	return "never"
}

// rootsOf answers the rows of a whole state and those of the transaction before: a torn root goes back to them.
func rootsOf(t *testing.T, whole []byte) (roots []map[string]string) {
	t.Helper()
	for _, torn := range []int{-1, 0, 4096} {
		b := bytes.Clone(whole)
		if torn >= 0 {
			b[torn+40] ^= 1
		}
		path := filepath.Join(t.TempDir(), "state.db")
		kit.Must(t, os.WriteFile(path, b, 0o600))
		db := open(t, Options{Path: path})
		roots = append(roots, dump(t, db))
		closeNow(t, db)
	}
	return roots
}

// A frame that rotted is found when it is read: Run ends, and the next Open begins anew.
func TestDamageFoundInUse(t *testing.T) {
	db, path := openAt(t)
	s := advance(1, 0, 1, 9000)
	commit(t, db, s)
	epoch := db.Epoch()
	closeNow(t, db)
	b, _ := os.ReadFile(path)
	i := strings.Index(string(b), string(s.Batches[0].Frame))
	b[i+5000] ^= 4
	kit.Must(t, os.WriteFile(path, b, 0o600))
	db = open(t, Options{Path: path})
	ended := make(chan error, 1)
	go func() { ended <- db.Run(t.Context()) }()
	kit.Err(t, "peek", ErrCorrupt)(db.Outbox.Peek(t.Context(), server, 1, 0, outbox.Limits{}))
	kit.Err(t, "run", ErrCorrupt)(<-ended)
	db = reopen(t, db, path)
	if len(db.Advice()) != 1 || db.Epoch() == epoch || len(db.Outbox.Destinations()) != 0 {
		t.Errorf("%+v, epoch %s", db.Advice(), db.Epoch())
	}
}
