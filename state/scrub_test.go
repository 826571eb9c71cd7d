package state

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/tail"
)

// What was removed is gone from the file too once it was scrubbed, and everything else is as it was.
func TestScrub(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, Options{Path: path})
	commit(t, db, advance(1, 0, 3, 10), advance(2, 0, 3, 10))
	secret := milestone("cp-1", 1)
	secret.Summary = strings.Repeat("what nobody is to read ", 40)
	derived(t, db, Derivation{File: 1, Checkpoints: []Checkpoint{secret}}, Derivation{File: 2, Checkpoints: []Checkpoint{milestone("cp-2", 2)}})
	if err := db.DropDerived(t.Context(), []tail.FileID{1}); err != nil {
		t.Fatal(err)
	}
	want := dump(t, db)
	holds := func() bool {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(text, []byte("nobody is to read"))
	}
	if !holds() || db.compactionDue() {
		t.Fatal("removed already, or about to be")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	db.Scrub()
	waitFor(t, "the text to be gone", func() bool { return !holds() })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, dump(t, db)); diff != "" || db.compactionDue() {
		t.Errorf("and then: due %v, %s", db.compactionDue(), diff)
	}
}

// A disk without place for a second file, and one that fails, leave the file as it is.
func TestScrubWithoutPlace(t *testing.T) {
	db := open(t, Options{FreeDisk: func(string) (uint64, uint64, error) { return 1 << 10, 1 << 30, nil }})
	if db.Scrub(); db.compactionDue() {
		t.Error("it would fill the disk")
	}
	broken := open(t, Options{Fault: func(step string) error {
		if step == "compact copy" {
			return errInjected
		}
		return nil
	}})
	broken.Scrub()
	broken.tend(t.Context(), true)
	if broken.compactionDue() {
		t.Error("tried for ever")
	}
}
