//go:build unix

package chaos

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// clockEnv names the file from which a program with another clock reads by how many seconds its clock is wrong.
const clockEnv = "CCSHIP_CHAOS_CLOCK"

// askedNow stands in time.Now of the standard library; with the line behind it a clock is wrong.
const (
	askedNow = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	wrongNow = askedNow + "\tsec += wrong()\n"
)

// wrongClock is added to package time. The file is mapped: the scheduler asks for the time where nothing can be read.
const wrongClock = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var wrongBy = new(int64)

func init() {
	file, _ := syscall.Getenv("` + clockEnv + `")
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	if page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED); err == nil {
		wrongBy = (*int64)(unsafe.Pointer(&page[0]))
	}
	_ = syscall.Close(fd)
}

func wrong() int64 { return atomic.LoadInt64(wrongBy) }
`

// wrongly builds a program of ours whose wall clock can be set. Nothing else in it differs.
var wrongly sync.Map // name → func() (path, error)

func withClock(t testing.TB, name string) string {
	t.Helper()
	once, _ := wrongly.LoadOrStore(name, sync.OnceValues(func() (string, error) { return buildWithClock(t, name) }))
	return kit.Try(once.(func() (string, error))()).Must(t)
}

func buildWithClock(t testing.TB, name string) (string, error) {
	root := kit.Try(exec.Command("go", "env", "GOROOT").Output()).Must(t)
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text := kit.Try(os.ReadFile(filepath.Join(std, "time.go"))).Must(t)
	kit.Require(t, strings.Count(string(text), askedNow) == 1, "time.Now of this Go does not begin with %q", askedNow)
	dir := filepath.Join(kit.Workshop(), "clock-"+name)
	kit.Must(t, os.MkdirAll(dir, 0o755))
	write := func(file, text string) string {
		path := filepath.Join(dir, file)
		kit.Must(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	overlay := kit.Try(json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(std, "time.go"):  write("time.go.txt", strings.Replace(string(text), askedNow, wrongNow, 1)),
		filepath.Join(std, "chaos.go"): write("chaos.go.txt", wrongClock),
	}})).Must(t)
	module := kit.Try(kit.Root()).Must(t)
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", write("overlay.json", string(overlay)), "-o", path, "./cmd/"+name)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	kit.Require(t, err == nil, "build %s with another clock: %v\n%s", name, err, out)
	return path, nil
}

// clockRoom is a room whose named programs have a clock that can be set.
func clockRoom(names ...string) func(t testing.TB, out *kit.Outcome) *room {
	return func(t testing.TB, out *kit.Outcome) *room {
		t.Helper()
		r := emptyRoom(t, out)
		r.programs = map[string]string{}
		for _, name := range names {
			r.programs[name] = withClock(t, name)
		}
		r.env = append(r.env, clockEnv+"="+filepath.Join(r.dir, "clock"))
		r.wrongBy(0)
		r.furnish(6)
		return r
	}
}

// wrongBy sets the clock of programs that run.
func (r *room) wrongBy(by time.Duration) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.dir, "clock"), os.O_WRONLY|os.O_CREATE, 0o600)
	kit.Must(r.t, err)
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by/time.Second)), 0)
	kit.Must(r.t, errors.Join(err, f.Close()))
}

const day = 24 * time.Hour

// TestClocks: the wall clock of a daemon or a server is set while it works, and stays wrong until after the proof. Only
// in the long form: another package time has everything built again.
func TestClocks(t *testing.T) {
	t.Parallel()
	const group = "clocks"
	forward := []time.Duration{time.Minute, time.Hour, 30 * day, 3650 * day}
	swing := func(r *room) {
		for i := range 6 {
			by := forward[r.rng.IntN(len(forward))]
			if i%2 == 1 {
				by = -by
			}
			r.wrongBy(by)
			r.write(2)
			r.soon(200 * time.Millisecond)
		}
	}
	set := func(sign int, do func(r *room)) func(r *room) {
		return func(r *room) {
			r.write(3)
			by := forward[r.out.Runs%len(forward)]
			if sign < 0 {
				by = -by
			}
			r.wrongBy(by)
			do(r)
			r.tell()
		}
	}
	lines := func(r *room) { r.write(8) }
	refused := func(r *room) { // while the daemon waits before it tries again
		r.door.set(respond(503, "application/json", `{"error":{"code":"busy"}}`))
		r.meanwhile(time.Second)
		r.door.set(nil)
	}
	rows(t, []row{
		{group: group, fault: "the machine's wall clock jumps ahead, a minute to ten years", long: 40, room: clockRoom("ccship"), do: set(1, lines)},
		{group: group, fault: "the machine's wall clock jumps back, a minute to ten years", long: 40, room: clockRoom("ccship"), do: set(-1, lines)},
		{group: group, fault: "the machine's wall clock jumps back while the server refuses", long: 20, room: clockRoom("ccship"), do: func(r *room) {
			r.wrongBy(3650 * day)
			refused(r)
			r.wrongBy(-3650 * day)
		}},
		{group: group, fault: "the machine's wall clock swings", long: 20, room: clockRoom("ccship"), do: func(r *room) { swing(r); r.tell() }},
		{group: group, fault: "the server's wall clock jumps ahead, a minute to ten years", long: 20, room: clockRoom("ccship-server"), do: set(1, lines)},
		{group: group, fault: "the server's wall clock jumps back, a minute to ten years", long: 20, room: clockRoom("ccship-server"), do: set(-1, lines)},
		{group: group, fault: "the server's wall clock swings", long: 20, room: clockRoom("ccship-server"), do: func(r *room) { swing(r); r.tell() }},
		{group: group, fault: "both wall clocks jump back, and daemon and server are killed", long: 20, room: clockRoom("ccship", "ccship-server"), do: func(r *room) {
			set(-1, lines)(r)
			r.s.p.Kill()
			r.d.Kill()
			r.s.start()
		}},
	})
}

// TestClockIsWrong: the clock of a program that is built for it does what it is set to, or the rows would prove
// nothing.
func TestClockIsWrong(t *testing.T) {
	t.Parallel()
	if kit.IsQuick() {
		t.Skip("builds everything again: only in the long form")
	}
	r := clockRoom("ccship", "ccship-server")(t, &kit.Outcome{})
	r.wrongBy(3650 * day)
	r.start()
	r.newTalk(2)
	r.settle()
	r.stop()
	kit.Has(t, fmt.Sprintf("the daemon's log: %s", r.d.Log), r.d.Log.String(),
		time.Now().Add(3650*day).Format("2006-"))
}
