package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
)

// A state of another build is refused in one line that says what to do, and stays as it is.
func TestOtherSchema(t *testing.T) {
	for version, want := range map[byte]error{1: ErrEarlier, schemaVersion - 1: ErrEarlier, schemaVersion + 1: ErrNewer} {
		path := filepath.Join(t.TempDir(), "state.db")
		b, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
		kit.Must(t, err)
		err = b.Update(func(tx *bbolt.Tx) error { // as the first versions wrote it: without a sum of rows
			meta, err := tx.CreateBucket([]byte("meta"))
			if err != nil {
				return err
			}
			return meta.Put([]byte("schema"), []byte{0, 0, 0, version})
		})
		kit.Must(t, errors.Join(err, b.Close()))
		before := kit.Try(os.ReadFile(path)).Must(t)
		_, err = Open(t.Context(), Options{Path: path})
		kit.Check(t, errors.Is(err, want) && strings.Contains(err.Error(), path) && !strings.Contains(err.Error(), "\n"),
			"version %d: %v", version, err)
		after, err := os.ReadFile(path)
		kit.Check(t, err == nil && string(after) == string(before), "version %d: it was touched, %v", version, err)
		aside, _ := filepath.Glob(path + ".corrupt-*")
		kit.Check(t, len(aside) == 0, "version %d: it was set aside", version)
	}
}
