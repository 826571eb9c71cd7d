package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// TestDiskFull: a database that has no space left says so, keeps answering, and stores again when there is some.
func TestDiskFull(t *testing.T) {
	s := kit.Try(Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	t.Cleanup(func() { _ = s.Close() })
	noise := make([]byte, 200_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // no compression makes it short
	line := fmt.Appendf(nil, `{"text":"%x"}`, noise)
	put := func() error {
		return s.Put(t.Context(), &server.Batch{Owner: 1, Received: said, Lines: []server.Line{{Raw: line}},
			Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 1}})
	}
	kit.Must(t, s.set(t.Context(), "PRAGMA max_page_count = 1")) // SQLite takes what there is
	err := put()
	kit.Check(t, server.DiskFull(err) && !server.Unavailable(err), "a batch without space: %v", err)
	kit.Try(s.Users(t.Context())).Must(t)
	kit.Must(t, s.set(t.Context(), "PRAGMA max_page_count = 1000000"))
	kit.Must(t, put())
	kit.Check(t, !server.DiskFull(nil), "no error is a full disk")
}
