package kv

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// A file of another schema is not opened, nor touched, nor set aside, and one line says what to do.
func TestOtherSchema(t *testing.T) {
	s, path := openAt(t)
	put(t, s, 10, "a")
	closeNow(t, s)
	before, _ := os.ReadFile(path)
	for version, want := range map[uint32]error{1: ErrNewer, 3: ErrEarlier} {
		_, err := tryOpen(t.Context(), Options{Path: path, Schema: Schema{Buckets: []string{rows}, Version: version}})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "it has schema 2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("for a ccship of schema %d: %v", version, err)
		}
	}
	after, _ := os.ReadFile(path)
	kit.Check(t, string(before) == string(after), "the file was touched")
	if s = open(t, Options{Path: path}); s.SetAside() != "" || s.held()["a"] != 10 {
		t.Errorf("set aside %q", s.SetAside())
	}
}
