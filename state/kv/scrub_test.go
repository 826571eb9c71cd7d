package kv

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
)

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
