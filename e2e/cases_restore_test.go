//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// resendLimit is how many bytes may be sent beyond what the other side lacked.
const resendLimit = 128 << 10

// snapshot copies a folder, and returns what puts the copy back in its place.
func snapshot(t testing.TB, dir string) (restore func()) {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "kept")
	kit.Must(t, os.CopyFS(kept, os.DirFS(dir)))
	return func() {
		t.Helper()
		kit.Must(t, os.RemoveAll(dir))
		kit.Must(t, os.CopyFS(dir, os.DirFS(kept)))
		kit.Must(t, os.Chmod(dir, 0o700))
	}
}

// rolledBack is a world with several transcripts that are on the server, of which one is rewound and some are idle.
type rolledBack struct {
	*world
	paths map[string]string // by session
	talks []*conversation

	lacked int64 // bytes that were written since the last start
}

// newRolledBack has the test run in parallel with others.
func newRolledBack(t *testing.T, seed uint64) *rolledBack {
	r := &rolledBack{world: aloneWorld(t), paths: map[string]string{}}
	for i := range uint64(5) {
		c := newConversation(seed+i, r.cwd())
		r.talks = append(r.talks, c)
		r.paths[c.session] = r.path("-work-shop", c.session+".jsonl")
		r.add(r.paths[c.session], c.even(60, 2000))
	}
	r.restart()
	r.sync()
	return r
}

// write appends lines to a transcript.
func (r *rolledBack) write(i, lines int) {
	data := r.talks[i].even(lines, 2000)
	r.lacked += int64(len(data))
	r.add(r.paths[r.talks[i].session], data)
}

// rewind cuts a transcript and goes on with other lines.
func (r *rolledBack) rewind(i, keep, lines int) {
	r.keepLines(r.paths[r.talks[i].session], keep)
	r.write(i, lines)
}

// restart starts the daemon.
func (r *rolledBack) restart() {
	r.t.Helper()
	r.start()
	r.lacked = 0
}

// keep copies folders while no daemon runs. What it returns puts the copies back in the same way.
func (r *rolledBack) keep(dirs ...string) (back func()) {
	r.t.Helper()
	r.d.MustStop(r.t)
	var restores []func()
	for _, dir := range dirs {
		restores = append(restores, snapshot(r.t, dir))
	}
	r.restart()
	return func() {
		r.t.Helper()
		r.d.MustStop(r.t)
		for _, restore := range restores {
			restore()
		}
		r.restart()
	}
}

// healed checks that the server shows what is on disk, that verify agrees, and that since the daemon started not much
// more was sent than what was written since and what the server lacked next to that.
func (r *rolledBack) healed(beside int64) {
	r.t.Helper()
	r.sync()
	for session, path := range r.paths {
		r.same(session, path)
	}
	r.verified()
	sent := r.sent()
	kit.Check(r.t, sent <= r.lacked+beside+resendLimit, "%d bytes were sent, the server lacked %d", sent, r.lacked+beside)
}

// TestHomeRestored: home and state go back to before a rewind, and other lines follow.
func TestHomeRestored(t *testing.T) {
	r := newRolledBack(t, 2000)
	back := r.keep(r.state(), r.projects())
	r.rewind(0, 20, 40)
	r.write(1, 30)
	r.sync()
	back()
	r.write(0, 5)
	r.healed(0)
}

// TestStateRestored: only the state goes back; the transcripts went on.
func TestStateRestored(t *testing.T) {
	r := newRolledBack(t, 2010)
	back := r.keep(r.state())
	r.write(0, 200)
	r.rewind(1, 10, 100)
	c := newConversation(2019, r.cwd()) // a transcript that the rolledBack state does not know
	r.talks = append(r.talks, c)
	r.paths[c.session] = r.path("-work-shop", c.session+".jsonl")
	r.add(r.paths[c.session], c.even(300, 2000))
	r.sync()
	back()
	r.write(2, 3)
	r.healed(0)
}

// TestStateLostThenRestored: an old epoch returns after another one was in front.
func TestStateLostThenRestored(t *testing.T) {
	r := newRolledBack(t, 2020)
	r.d.MustStop(t)
	back := snapshot(t, r.state())
	kit.Must(t, os.RemoveAll(r.state()))
	r.restart()
	r.write(0, 10)
	r.healed(0) // a new state sends nothing again that the server has
	r.d.MustStop(t)
	back()
	r.restart()
	r.write(0, 5)
	r.healed(0)
}

// TestServerRestored: the database goes back while the daemon runs; the next write notices, idle transcripts heal too.
func TestServerRestored(t *testing.T) {
	for _, how := range []string{"file copied back", "restore"} {
		t.Run(how, func(t *testing.T) {
			r := newRolledBack(t, 2030)
			r.exact.proc.MustStop(t)
			back := snapshot(t, filepath.Dir(r.exact.database()))
			r.exact.start()
			r.write(0, 40)
			r.rewind(1, 30, 10)
			r.sync()
			before := r.sent() // the server will lack the 50 lines
			r.exact.proc.MustStop(t)
			back()
			if how == "restore" {
				renewStore(t, r)
			}
			r.exact.start()
			r.write(2, 1)
			r.healed(before)
		})
	}
}

// renewStore restores the database from a copy of itself, with the server's own command.
func renewStore(t testing.TB, r *rolledBack) {
	t.Helper()
	backup := filepath.Join(t.TempDir(), "backup.db")
	data := kit.Try(os.ReadFile(r.exact.database())).Must(t)
	kit.Must(t, os.WriteFile(backup, data, 0o600))
	r.serverTool(0, "restore", "--force", "--from", backup)
}

// TestSecondDaemonBeside: a daemon with another state ran for a while; the first one's lines show again after it.
func TestSecondDaemonBeside(t *testing.T) {
	r := newRolledBack(t, 2040)
	r.d.MustStop(t)
	first := r.state()
	aside := first + ".aside"
	kit.Must(t, os.Rename(first, aside))
	r.start() // another state folder, the same machine and files
	r.write(0, 10)
	r.healed(0)
	r.d.MustStop(t)
	kit.Must(t, os.RemoveAll(first))
	kit.Must(t, os.Rename(aside, first))
	r.restart()
	r.write(0, 5)
	r.healed(0)
}

// TestNothingIsOverwritten: whatever a state that went back sends, all lines that were acknowledged can be read.
func TestNothingIsOverwritten(t *testing.T) {
	r := newRolledBack(t, 2050)
	back := r.keep(r.state(), r.projects())
	r.write(0, 40)
	r.sync()
	session := r.talks[0].session
	future := r.read(r.paths[session])
	back()
	r.write(0, 40) // other lines in the same places
	r.healed(0)
	found := false
	for _, g := range r.exact.digest(session).Generations {
		found = found || string(r.exact.raw(session, generation(int(g.Generation)))) == string(future)
	}
	kit.Check(t, found, "the %d bytes of the other future are in no generation", len(future))
}
