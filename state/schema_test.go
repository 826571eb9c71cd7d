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
		if !errors.Is(err, want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("version %d: %v", version, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("version %d: it was touched, %v", version, err)
		}
		if aside, _ := filepath.Glob(path + ".corrupt-*"); len(aside) != 0 {
			t.Errorf("version %d: it was set aside", version)
		}
	}
}
