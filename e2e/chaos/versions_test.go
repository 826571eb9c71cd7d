//go:build unix

package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/kv"
)

// TestOtherVersions: the state is an earlier version's, or a newer one's.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	const group = "state file"
	rows(t, []row{
		{group: group, fault: "of an earlier version, taken over", short: 1, long: 40, do: func(r *room) {
			r.settle()
			r.stop()
			r.marked(byte(3 + r.rng.IntN(2)))
			r.write(5)
			r.start()
			r.tell()
		}},
		{group: group, fault: "of an earlier version, killed while it is taken over", long: 100, do: func(r *room) {
			r.stop()
			r.marked(byte(3 + r.rng.IntN(2)))
			r.write(5)
			for range 3 {
				r.launch()
				r.soon(40 * time.Millisecond)
				r.d.Kill()
			}
			r.heard("killed; its service manager starts it again")
		}},
		{group: group, fault: "of a newer version, then put back", short: 1, long: 20, do: func(r *room) {
			r.stop()
			back := r.copied(r.state())
			r.marked(99)
			newer, err := os.ReadFile(filepath.Join(r.state(), "state.db"))
			kit.Must(r.t, err)
			r.write(3)
			r.launch()
			if !kit.Within(verbLimit, r.d.Ended) {
				r.hung("the daemon uses a newer version's state, or hangs")
			}
			r.tell()
			if after, err := os.ReadFile(filepath.Join(r.state(), "state.db")); err != nil || string(after) != string(newer) {
				r.out.Wrong++
				r.t.Errorf("a newer version's state was changed: %v", err)
			}
			back()
		}},
	})
}

// marked makes the state one of another version. The rows of versions 3 and 4 are like today's, without their sum.
func (r *room) marked(version byte) {
	r.t.Helper()
	db, err := bbolt.Open(filepath.Join(r.state(), "state.db"), 0o600, &bbolt.Options{NoFreelistSync: true})
	kit.Must(r.t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(kv.BucketMeta))
		err := meta.Put([]byte("schema"), []byte{0, 0, 0, version})
		if version < 5 {
			return errors.Join(err, meta.Delete([]byte("rows")))
		}
		return errors.Join(err, kv.SumRows(tx))
	})
	kit.Must(r.t, errors.Join(err, db.Close()))
}
