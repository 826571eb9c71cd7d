//go:build unix

package chaos

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/kv"
)

// TestIdentity: state, transcripts and stores go back in time, are lost, and are another's.
func TestIdentity(t *testing.T) {
	t.Parallel()
	const group = "identity"
	all := []row{
		{group: group, fault: "state put back from a copy", short: 1, long: 20, do: func(r *room) {
			back := r.copied(r.state())
			r.write(20)
			r.settle()
			r.stop()
			back()
			r.write(5)
			r.start()
			r.tell()
		}},
		{group: group, fault: "state and transcripts put back from a copy older than rewinds", short: 1, long: 20, do: func(r *room) {
			r.settle()
			r.stop()
			stateBack, rootBack := r.copied(r.state()), r.copied(r.projects())
			talks := append([]*talk(nil), r.talks...)
			r.start()
			for range 4 {
				r.talks[r.rng.IntN(len(r.talks))].rewind(r)
			}
			r.write(10)
			r.settle()
			r.stop()
			stateBack()
			rootBack()
			r.talks = talks
			r.write(8)
			r.start()
			r.tell()
		}},
		{group: group, fault: "state lost", short: 1, long: 20, do: func(r *room) {
			r.stop()
			r.emptied(r.state())
			r.write(5)
			r.start()
			r.tell()
		}},
		{group: group, fault: "state lost, then put back from a copy", long: 20, do: func(r *room) {
			r.stop()
			back := r.copied(r.state())
			r.emptied(r.state())
			r.write(5)
			r.start()
			r.settle()
			r.write(5)
			r.stop()
			back()
			r.write(3)
			r.start()
			r.tell()
		}},
		{group: group, fault: "the server's database put back from a copy", short: 1, long: 20, do: func(r *room) {
			r.settle()
			r.s.p.Kill()
			back := r.copied(filepath.Join(r.dir, "server"))
			r.s.start()
			r.write(20)
			r.settle()
			r.s.p.Kill()
			back()
			r.s.start()
			r.write(5)
			r.tell()
		}},
		{group: group, fault: "the server's database is a new one", long: 20, room: freshStore, do: func(r *room) {
			r.settle()
			r.s.p.Kill()
			r.restored(filepath.Join(r.dir, "server"), filepath.Join(r.dir, "fresh"))
			r.s.start()
			r.write(5)
			r.tell()
		}},
		{group: group, fault: "another state folder for a while", long: 20, do: func(r *room) {
			r.stop()
			r.paths["state"] = filepath.Join(r.dir, "other-state")
			r.write(5)
			r.start()
			r.settle()
			r.stop()
			delete(r.paths, "state")
			r.write(5)
			r.start()
			r.tell()
		}},
	}
	rows(t, all)
}

// settle waits until the server has everything.
func (r *room) settle() {
	r.t.Helper()
	r.start()
	if done := r.sync(); done.code != 0 {
		r.hung("sync --wait ends with %d: %s", done.code, done.text())
	}
}

// copied copies a folder, and returns what puts it back.
func (r *room) copied(folder string) func() {
	r.t.Helper()
	at := kit.Try(os.MkdirTemp(r.dir, "copy")).Must(r.t)
	r.restored(at, folder)
	return func() {
		r.restored(folder, at)
		_ = os.RemoveAll(at)
	}
}

// restored makes a folder hold what another one holds, times of files included.
func (r *room) restored(folder, from string) {
	r.t.Helper()
	r.emptied(folder)
	out, err := exec.Command("cp", "-a", "--sparse=always", from+"/.", folder).CombinedOutput()
	kit.Require(r.t, err == nil, "cp: %v %s", err, out)
}

func (r *room) emptied(folder string) {
	r.t.Helper()
	entries := kit.Try(os.ReadDir(folder)).Must(r.t)
	for _, entry := range entries {
		kit.Must(r.t, os.RemoveAll(filepath.Join(folder, entry.Name())))
	}
}

// freshStore keeps a copy of the server's store from when it knew only its key.
func freshStore(t testing.TB, out *kit.Outcome) *room {
	t.Helper()
	r := newRoom(t, out, 6)
	r.s.p.Kill()
	kit.Must(t, os.MkdirAll(filepath.Join(r.dir, "fresh"), 0o700))
	r.restored(filepath.Join(r.dir, "fresh"), filepath.Join(r.dir, "server"))
	r.s.start()
	return r
}

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
	other := kit.Try(os.ReadFile(filepath.Join(r.state(), "state.db"))).Must(r.t)
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
