package kv

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
