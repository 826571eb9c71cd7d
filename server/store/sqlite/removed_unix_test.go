//go:build unix

package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// TestRemovedDatabase: nothing is acknowledged that goes into a file which nobody finds again, and no empty database
// takes its place.
func TestRemovedDatabase(t *testing.T) {
	for how, do := range map[string]func(path string) error{
		"removed":    os.Remove,
		"moved away": func(path string) error { return os.Rename(path, path+".away") },
		"replaced": func(path string) error {
			err := os.Rename(path, path+".away")
			if err == nil {
				err = os.WriteFile(path, nil, 0o600)
			}
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "server.db")
			s := kit.Try(Open(t.Context(), path, sqlstore.Opening{})).Must(t)
			t.Cleanup(func() { _ = s.Close() })
			s.read.SetMaxIdleConns(0) // each read opens a connection
			put := func(index int64) error {
				return s.Put(t.Context(), &server.Batch{Owner: 1, Received: said, Lines: []server.Line{{Index: index, Raw: []byte("{}")}},
					Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: index + 1}})
			}
			kit.Must(t, put(0))
			kit.Must(t, do(path))
			before, _ := os.Stat(path)
			err := put(1)
			kit.Check(t, server.Unavailable(err), "a batch that goes nowhere: %v", err)
			_, err = s.Users(t.Context())
			kit.Check(t, how == "replaced" || server.Unavailable(err), "users: %v", err)
			after, _ := os.Stat(path)
			kit.Check(t, (before == nil) == (after == nil), "a file was made: %v, before %v", after, before)
			if how == "moved away" {
				kit.Must(t, os.Rename(path+".away", path))
				kit.Must(t, put(1))
			}
		})
	}
}
