package chaos

import (
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSteps kills programs before a chosen call on their own files.
func TestSteps(t *testing.T) {
	t.Parallel()
	var all []row
	for _, step := range []struct {
		op, file    string
		torn        bool
		short, long int
	}{
		{"write", "state.db", false, 2, 150}, {"write", "state.db", true, 2, 150}, {"fsync", "state.db", false, 1, 100},
		{"open|create", "", false, 0, 30}, {"read", "", false, 0, 30}, {"rename", "", false, 0, 10},
	} {
		all = append(all, row{group: "steps", fault: "daemon, its state: before " + name(step.op, step.torn), short: step.short, long: step.long,
			room: mountedRoom("state"), do: func(r *room) { r.killedInStep(step.op, step.file, step.torn, r.rng.IntN(12)) }})
	}
	for _, step := range []struct {
		op          string
		torn        bool
		short, long int
	}{{"write", false, 1, 100}, {"write", true, 1, 100}, {"fsync", false, 0, 60}, {"truncate", false, 0, 10}} {
		all = append(all, row{group: "steps", fault: "server, its database: before " + name(step.op, step.torn), short: step.short, long: step.long,
			room: mountedRoom("server"), do: func(r *room) { r.serverKilledInStep(step.op, step.torn) }})
	}
	for _, op := range []string{"open", "read", "list"} {
		all = append(all, row{group: "steps", fault: "daemon, the transcripts: before " + name(op, false), long: 30,
			room: mountedRoom("roots"), do: func(r *room) { r.killedInStep(op, "", false, r.rng.IntN(20)) }})
	}
	rows(t, all)
}

func name(op string, torn bool) string {
	if torn {
		return "the second half of a " + op
	}
	return map[string]string{"open|create": "opening or making a file", "open": "opening a file", "read": "reading", "write": "writing",
		"fsync": "fsync", "rename": "renaming", "list": "listing a folder", "truncate": "changing its size"}[op]
}

// killedInStep kills the daemon before one of its next calls, or, when none comes, at once.
func (r *room) killedInStep(op, file string, torn bool, after int) {
	r.t.Helper()
	if op == "open|create" || op == "rename" || op == "read" {
		r.stop()
		r.launch()
	}
	do := "kill"
	if torn {
		do = "torn then kill"
	}
	r.mount.set(spoil{Op: op, File: file, After: after, Times: 1, Do: do, PID: r.d.Cmd.Process.Pid})
	for begin := time.Now(); !r.d.Ended() && time.Since(begin) < 5*time.Second; {
		r.write(1)
		r.soon(10 * time.Millisecond)
	}
	if r.mount.clean().Hits == 0 {
		r.out.Hear("killed between two steps; its service manager starts it again")
	} else {
		r.out.Hear("killed; its service manager starts it again")
	}
	r.d.Kill()
}

func (r *room) serverKilledInStep(op string, torn bool) {
	r.t.Helper()
	do := "kill"
	if torn {
		do = "torn then kill"
	}
	r.mount.set(spoil{Op: op, After: r.rng.IntN(20), Times: 1, Do: do, PID: r.s.p.Cmd.Process.Pid})
	for begin := time.Now(); !r.s.p.Ended() && time.Since(begin) < 5*time.Second; {
		r.write(1)
		r.soon(10 * time.Millisecond)
	}
	r.mount.clean()
	r.s.p.Kill()
	r.tell()
	r.s.start()
}

// TestFileSystem has calls on state, transcripts and database refused and done by halves.
func TestFileSystem(t *testing.T) {
	t.Parallel()
	const io, full = int(syscall.EIO), int(syscall.ENOSPC)
	var all []row
	for _, f := range []struct {
		name, where string
		short, long int
		how         spoil
	}{
		{"state: no space left", "state", 1, 20, spoil{Op: "write|truncate|create", Do: "error", Errno: full}},
		{"state: no space left, now and then", "state", 0, 20, spoil{Op: "write|truncate|create", Do: "error", Errno: full, One: 4}},
		{"state: half a write, then no space left", "state", 1, 20, spoil{Op: "write", Do: "short then error", Errno: full}},
		{"state: writes are short", "state", 1, 20, spoil{Op: "write", Do: "short", One: 2}},
		{"state: writes fail (EIO)", "state", 1, 20, spoil{Op: "write", Do: "error", Errno: io}},
		{"state: writes fail now and then", "state", 0, 20, spoil{Op: "write", Do: "error", Errno: io, One: 10}},
		{"state: fsync fails", "state", 1, 20, spoil{Op: "fsync", Do: "error", Errno: io}},
		{"state: fsync fails now and then", "state", 0, 20, spoil{Op: "fsync", Do: "error", Errno: io, One: 4}},
		{"state: reads fail", "state", 0, 20, spoil{Op: "read", Do: "error", Errno: io}},
		{"state: every write takes a second", "state", 0, 5, spoil{Op: "fsync", Do: "wait"}},
		{"transcripts: reads fail", "roots", 1, 20, spoil{Op: "read", Do: "error", Errno: io}},
		{"transcripts: reads fail now and then", "roots", 0, 20, spoil{Op: "read", Do: "error", Errno: io, One: 3}},
		{"transcripts: can't be opened (EACCES)", "roots", 0, 20, spoil{Op: "open", Do: "error", Errno: int(syscall.EACCES)}},
		{"transcripts: can't be opened (EMFILE)", "roots", 0, 20, spoil{Op: "open|list", Do: "error", Errno: int(syscall.EMFILE)}},
		{"transcripts: folders can't be listed", "roots", 1, 20, spoil{Op: "list", Do: "error", Errno: io}},
		{"database: no space left", "server", 1, 20, spoil{Op: "write|truncate|create", Do: "error", Errno: full}},
		{"database: half a write, then no space left", "server", 0, 20, spoil{Op: "write", Do: "short then error", Errno: full}},
		{"database: writes are short", "server", 0, 20, spoil{Op: "write", Do: "short", One: 2}},
		{"database: writes fail", "server", 0, 20, spoil{Op: "write", Do: "error", Errno: io}},
		{"database: fsync fails now and then", "server", 0, 20, spoil{Op: "fsync", Do: "error", Errno: io, One: 3}},
		{"database: reads fail now and then", "server", 0, 20, spoil{Op: "read", Do: "error", Errno: io, One: 3}},
	} {
		all = append(all, row{group: "file system", fault: f.name, short: f.short, long: f.long, room: mountedRoom(f.where),
			do: func(r *room) { r.spoiled(f.how) }})
	}
	rows(t, all)
}

// spoiled has calls go wrong for a while. Daemon and server that end are started again, as service managers do.
func (r *room) spoiled(how spoil) {
	r.t.Helper()
	r.mount.set(how)
	for begin := time.Now(); time.Since(begin) < 1500*time.Millisecond; {
		r.write(1)
		r.soon(40 * time.Millisecond)
	}
	// What is written past a mount causes no events: the daemon is asked to look, at files that it has never read, too.
	if !kit.Within(verbLimit, func() bool {
		r.write(1)
		if r.paths["roots"] != "" {
			r.newFrom(2)
			r.ccship("sync")
		}
		return r.mount.hits() > 0
	}) {
		r.t.Error("nothing went wrong")
	}
	r.tell()
	r.mount.clean()
	if r.s.p.Ended() {
		r.s.start()
	}
}
