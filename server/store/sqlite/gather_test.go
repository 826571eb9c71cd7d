package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/server"
)

// TestGathering: lines wait for those that are being packed, not for long, and not when there are none.
func TestGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gathering
		waited := func() time.Duration {
			began := time.Now()
			g.wait(t.Context())
			return time.Since(began)
		}
		if d := waited(); d != 0 {
			t.Errorf("waited %s for nothing", d)
		}
		for round := range 2 {
			g.begin()
			g.begin()
			time.AfterFunc(2*time.Millisecond, g.end)
			time.AfterFunc(5*time.Millisecond, g.end)
			if d := waited(); d != 5*time.Millisecond {
				t.Errorf("round %d: waited %s for what was packed after 5ms", round, d)
			}
		}
		g.begin()
		if d := waited(); d != gatherMost {
			t.Errorf("waited %s for what takes long", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if g.wait(ctx); time.Since(began) != 0 {
			t.Error("waited for a request that is gone")
		}
		g.end()
		if d := waited(); d != 0 {
			t.Errorf("waited %s when all was packed", d)
		}
	})
}

// TestImportsGather: lines of an import wait for others that are being packed, those of a live session do not.
func TestImportsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "server.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		put := func(session string, size int) time.Duration {
			raw := fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", size))
			began := time.Now()
			if err := s.Put(t.Context(), &server.Batch{Owner: 1, Received: began, Head: server.Head{SessionID: session, EndLine: 1},
				Lines: []server.Line{{Raw: raw}}}); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		if d := put("alone", 1<<20); d != 0 {
			t.Errorf("a lone import waited %s", d)
		}
		s.packing.begin()
		if d := put("import", 1<<20); d != gatherMost {
			t.Errorf("an import waited %s for another", d)
		}
		if d := put("live", 100); d != 0 {
			t.Errorf("a live line waited %s for an import", d)
		}
		s.packing.end()
	})
}
