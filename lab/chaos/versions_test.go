//go:build unix

package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/kv"
)

// TestOtherVersions: the state is an earlier version's, or a newer one's.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	const group = "state file"
	rows(t, []row{
		{group: group, fault: "of a newer version, then put back", short: 1, long: 20, do: func(r *room) { r.refuses(99) }},
		{group: group, fault: "of an earlier version, then put back", short: 1, long: 20, do: func(r *room) { r.refuses(3) }},
	})
}

// refuses starts the daemon on a state of another version, which it leaves as it is, and puts the own one back.
func (r *room) refuses(version byte) {
	r.t.Helper()
	r.stop()
	back := r.copied(r.state())
	r.marked(version)
	other, err := os.ReadFile(filepath.Join(r.state(), "state.db"))
	kit.Must(r.t, err)
	r.write(3)
	r.launch()
	if !kit.Within(verbLimit, r.d.Ended) {
		r.hung("the daemon uses another version's state, or hangs")
	}
	r.tell()
	if after, err := os.ReadFile(filepath.Join(r.state(), "state.db")); err != nil || string(after) != string(other) {
		r.out.Wrong++
		r.t.Errorf("another version's state was changed: %v", err)
	}
	back()
}

// marked makes the state one of another version.
func (r *room) marked(version byte) {
	r.t.Helper()
	db, err := bbolt.Open(filepath.Join(r.state(), "state.db"), 0o600, &bbolt.Options{NoFreelistSync: true})
	kit.Must(r.t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(kv.BucketMeta))
		return errors.Join(meta.Put([]byte("schema"), []byte{0, 0, 0, version}), kv.SumRows(tx))
	})
	kit.Must(r.t, errors.Join(err, db.Close()))
}
