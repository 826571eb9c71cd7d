package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestResources: the daemon has little of what it needs.
func TestResources(t *testing.T) {
	t.Parallel()
	const group = "resources"
	all := []row{
		{group: group, fault: "10 to 40 descriptors", short: 1, long: 31, do: func(r *room) {
			r.within(fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, 10+r.out.Runs%31))
		}},
		{group: group, fault: "0 to 3 watches (inotify)", long: 20, do: func(r *room) {
			r.within(fmt.Sprintf(`exec unshare -Ur sh -c 'echo %d > /proc/sys/user/max_inotify_watches && exec "$0" "$@"' "$0" "$@"`, r.out.Runs%4))
		}},
		{group: group, fault: "no inotify instance", short: 1, long: 10, do: func(r *room) {
			r.within(`exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" "$@"' "$0" "$@"`)
		}},
		{group: group, fault: "40 MB of address space for data", long: 10, do: func(r *room) { r.within(`ulimit -d 40000 && exec "$0" "$@"`) }},
		{group: group, fault: "no file may grow above 20 MB", long: 10, do: func(r *room) { r.within(`ulimit -f 20480 && exec "$0" "$@"`) }},
		{group: group, fault: "monotonic clock a year ahead, and back at 0", short: 1, long: 20, do: func(r *room) {
			ahead := []int{365 * 24 * 3600, 0, 20 * 365 * 24 * 3600}[r.out.Runs%3]
			r.within(fmt.Sprintf(`exec unshare --time --monotonic %d --boottime %d sh -c '%s' "$0" "$@"`, ahead, ahead, child))
		}},
		{group: group, fault: "transcripts dated ten years ahead, and in 1970", short: 1, long: 20, do: func(r *room) {
			for _, c := range r.talks {
				at := time.Now().AddDate(10*(r.rng.IntN(3)-1), 0, 0)
				if r.rng.IntN(4) == 0 {
					at = time.Unix(1, 0)
				}
				c.add(r, 1)
				kit.Must(r.t, os.Chtimes(c.path, at, at))
			}
			r.write(3)
		}},
		{group: group, fault: "state read-only", short: 1, long: 20, do: (*room).readOnly},
		{group: group, fault: "state folder removed and back", long: 20, do: func(r *room) { r.away(r.state()) }},
		{group: group, fault: "state file removed", short: 1, long: 20, do: func(r *room) {
			file := filepath.Join(r.state(), "state.db")
			// One that was removed before is written again when the daemon next looks.
			kit.Eventually(r.t, "the state file is there", time.Minute, func() bool { return os.Remove(file) == nil })
			r.write(8)
			r.tell()
		}},
		{group: group, fault: "transcripts' folder removed and back", short: 1, long: 20, do: func(r *room) { r.awayRoot() }},
		{group: group, fault: "configuration broken and mended", long: 20, do: func(r *room) {
			kit.Must(r.t, os.WriteFile(r.config(), []byte("server_url = [\n"), 0o600))
			r.write(5)
			r.d.Signal(syscall.SIGHUP)
			r.tell()
			kit.Must(r.t, os.WriteFile(r.config(), nil, 0o600))
			r.d.Signal(syscall.SIGHUP)
		}},
		{group: group, fault: "key unreadable and back", long: 20, do: func(r *room) {
			key := kit.Try(os.ReadFile(r.keyFile())).Must(r.t)
			kit.Must(r.t, os.Remove(r.keyFile()))
			r.write(5)
			r.d.Signal(syscall.SIGHUP)
			r.soon(time.Second)
			r.tell()
			kit.Must(r.t, os.WriteFile(r.keyFile(), key, 0o600))
		}},
		{group: group, fault: "a full disk below the state (tmpfs)", short: 1, long: 10, room: smallDisk, do: (*room).fill},
	}
	rows(t, all)
}

// child runs a program as a child of a shell, which passes SIGTERM on and ends as the program does. Only children are in
// a new namespace of time, and unshare --fork passes no signal on.
const child = `"$0" "$@" & p=$!; trap "kill -TERM $p" TERM; wait $p; r=$?; [ $r -le 128 ] || { wait $p; r=$?; }; exit $r`

// within runs the daemon below a shell that limits it first, and has lines written. What it then says is recorded.
func (r *room) within(limit string) {
	r.t.Helper()
	r.stop()
	r.wrap = func(cmd *exec.Cmd) {
		shell := kit.Try(exec.LookPath("sh")).Must(r.t)
		cmd.Args = append([]string{"sh", "-c", limit, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = shell
	}
	r.launch()
	r.wrap = nil
	for begin := time.Now(); time.Since(begin) < 1500*time.Millisecond; {
		r.write(1)
		r.soon(50 * time.Millisecond)
	}
	r.newTalk(5)
	kit.Within(2*time.Second, func() bool { return r.d.Ended() || r.ccship("status").code == 0 })
	r.tell()
	r.stop()
}

// readOnly mounts the state folder read-only below a daemon that starts.
func (r *room) readOnly() {
	r.t.Helper()
	if os.Geteuid() != 0 {
		r.t.Skip("needs root to mount")
	}
	r.stop()
	kit.Must(r.t, syscall.Mount(r.state(), r.state(), "", syscall.MS_BIND, ""))
	defer func() { _ = syscall.Unmount(r.state(), syscall.MNT_DETACH) }()
	if err := syscall.Mount("", r.state(), "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		r.t.Skip("no read-only mounts here: " + err.Error())
	}
	r.launch()
	r.write(5)
	kit.Within(2*time.Second, r.d.Ended)
	r.tell()
	r.stop()
}

// away moves a folder away for a while.
func (r *room) away(folder string) {
	r.t.Helper()
	kit.Must(r.t, os.Rename(folder, folder+".away"))
	r.write(8)
	r.soon(time.Second)
	r.tell()
	_ = os.RemoveAll(folder) // what was made meanwhile
	kit.Must(r.t, os.Rename(folder+".away", folder))
}

// awayRoot is away for the transcripts, which nobody can write to meanwhile.
func (r *room) awayRoot() {
	r.t.Helper()
	r.write(4)
	folder := r.projects()
	kit.Must(r.t, os.Rename(folder, folder+".away"))
	kit.Within(2*time.Second, func() bool { return !strings.Contains(r.ccship("status").text(), "everything") })
	r.tell()
	kit.Must(r.t, os.Rename(folder+".away", folder))
	r.write(4)
}

// smallDisk has the state on a disk of its own, of 24 MB.
func smallDisk(t testing.TB, out *kit.Outcome) *room {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount")
	}
	r := emptyRoom(t, out)
	kit.Must(t, syscall.Mount("chaos", r.state(), "tmpfs", 0, "size=24m"))
	t.Cleanup(func() { _ = syscall.Unmount(r.state(), syscall.MNT_DETACH) })
	r.furnish(6)
	return r
}

// fill takes what is free of the disk, while the server refuses, so that the outbox has to grow.
func (r *room) fill() {
	r.t.Helper()
	r.door.set(respond(503, "application/json", `{"error":{"code":"busy","message":"chaos"}}`))
	ballast := filepath.Join(r.state(), "ballast")
	_ = os.WriteFile(ballast, make([]byte, 30<<20), 0o600) // it does not all fit
	for begin := time.Now(); time.Since(begin) < 2*time.Second; {
		r.talks[0].add(r, 20)
		r.soon(50 * time.Millisecond)
	}
	r.tell()
	kit.Must(r.t, os.Remove(ballast))
	r.door.set(nil)
}
