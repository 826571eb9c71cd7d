//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// killsPerArena is how many kills one home lives through, so that what is compared in the end stays small, and a state
// file can still become mostly empty.
const killsPerArena = 50

// TestCrash kills the real daemon in every phase of its work, against a server that refuses one request in five and
// loses its answer to another one in five. In the end nothing is missing and nothing is wrong.
func TestCrash(t *testing.T) {
	t.Parallel()
	kills := kit.SettingNumber("kills", 10)
	for name, newWorld := range map[string]func(testing.TB) *world{"plain server": plainWorld, "ccship-server": exactWorld} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := make([]*kit.Outcome, len(crashPhases))
			for i, phase := range crashPhases {
				made[i] = &kit.Outcome{Group: "programs", Fault: "kill -9 of the daemon in its phase " + phase.name + ", against a " + name}
				kit.Record(t, made[i])
			}
			for from := 0; from < kills && !t.Failed(); from += killsPerArena {
				t.Run("home", func(t *testing.T) { crashes(newWorld(t), made, from, min(kills, from+killsPerArena)) })
			}
		})
	}
}

// crashPhases are what the daemon does when it is killed.
var crashPhases = []struct {
	name string
	kill func(a *arena) bool // false: it came too late for its phase
}{
	{"import", (*arena).killImport}, {"append", (*arena).killAppend}, {"rewind", (*arena).killRewind},
	{"acknowledge", (*arena).killAcknowledge}, {"compact", (*arena).killCompact},
}

// crashes kills the daemon of one home, for the kills with these numbers.
func crashes(w *world, made []*kit.Outcome, from, to int) {
	seed := uint64(time.Now().UnixNano())
	w.t.Logf("seed %d", seed)
	a := newArena(w, seed)
	for n := from; n < to; n++ {
		i := n % len(crashPhases)
		for try := 0; !crashPhases[i].kill(a); try++ {
			kit.Require(w.t, try != 100, "no kill hit the phase %q in %d tries", crashPhases[i].name, try)
		}
		made[i].Runs++
		made[i].Hear("killed; its service manager starts it again")
	}
	w.t.Logf("%d kills; those that came too late for their phase: %d", to-from, a.late)
	a.settle()
}

// arena is a world whose daemon is killed.
type arena struct {
	*world
	rng   *rand.Rand
	files []crashFile
	late  int
}

type crashFile struct {
	*conversation
	path string
}

func newArena(w *world, seed uint64) *arena {
	w.configure("compact_above = \"256KiB\"\n")
	a := &arena{world: w, rng: rand.New(rand.NewPCG(seed, seed))}
	for range 6 {
		a.grow(40)
	}
	a.flaky()
	return a
}

// grow adds a transcript of n lines.
func (a *arena) grow(n int) {
	c := newConversation(a.rng.Uint64(), a.cwd())
	path := a.path(fmt.Sprintf("-work-%d", a.rng.IntN(4)), c.session+".jsonl")
	a.add(path, c.mixed(n))
	a.files = append(a.files, crashFile{c, path})
}

func (a *arena) any() crashFile { return a.files[a.rng.IntN(len(a.files))] }

// flaky is the server of the loop: of five requests one is refused, one stored but not answered.
func (a *arena) flaky() {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(a.rng.Uint64(), 1))
	a.gate.set(onPost(func(*http.Request) *verdict {
		mu.Lock()
		defer mu.Unlock()
		switch rng.IntN(5) {
		case 0:
			return &verdict{status: 503}
		case 1:
			return &verdict{lose: true}
		}
		return nil
	}))
}

// soon waits up to limit, most often much less.
func (a *arena) soon(limit time.Duration) { pass(time.Duration(a.rng.Int64N(int64(limit)))) }

// begin starts the daemon without waiting for its answer.
func (a *arena) begin() { a.d = a.launch(kit.Program(a.t, "ccship"), "run") }

// hit kills the daemon and says whether that was in time.
func (a *arena) hit(inTime func() bool) bool {
	a.d.Kill()
	if inTime() {
		return true
	}
	a.late++
	return false
}

func (a *arena) killImport() bool {
	for range 3 {
		a.grow(250) // three requests at least
	}
	posts, _, _ := a.gate.counts()
	a.begin()
	want := posts + a.rng.IntN(7)
	eventually(a.t, "the import begins", 30*time.Second, func() bool { now, _, _ := a.gate.counts(); return now >= want })
	a.soon(20 * time.Millisecond)
	return a.hit(func() bool { return !a.complete(a.files[len(a.files)-3:]) })
}

// complete says whether the server has these files to their ends.
func (a *arena) complete(files []crashFile) bool {
	for _, f := range files {
		content := a.read(f.path)
		if a.plain != nil && len(objectsMissing(content, a.plain.lines(f.session))) > 0 {
			return false
		}
		if a.exact != nil && !bytes.Equal(a.exact.raw(f.session, ""), content) {
			return false
		}
	}
	return true
}

// killAppend kills while two transcripts grow. In time: lines that were on disk before the kill did not arrive.
func (a *arena) killAppend() bool {
	a.d = a.daemon()
	stop, done := make(chan struct{}), make(chan error, 1)
	f, g := a.any(), a.any()
	before := []sight{a.look(f), a.look(g)}
	go func() { done <- appendBoth(f, g, stop) }()
	a.soon(300 * time.Millisecond)
	now := []sight{a.look(f), a.look(g)}
	hit := a.hit(func() bool {
		return slices.ContainsFunc(now, func(s sight) bool {
			i := slices.IndexFunc(before, func(b sight) bool { return b.path == s.path })
			return a.lacks(s, len(before[i].lines))
		})
	})
	close(stop)
	must(a.t, <-done)
	return hit
}

// appendBoth lets two transcripts grow, line by line, until stop.
func appendBoth(f, g crashFile, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
			if err := appendTo(f.path, f.line(900)); err != nil {
				return err
			}
			if err := appendTo(g.path, g.line(2000)); err != nil {
				return err
			}
			pass(time.Millisecond)
		}
	}
}

// killRewind kills after three rewinds. In time: what was written behind one of them did not arrive.
func (a *arena) killRewind() bool {
	a.d = a.daemon()
	a.soon(200 * time.Millisecond)
	kept := map[string]int{} // lines that no rewind took
	var last []sight
	for range 3 {
		f := a.any()
		n := bytes.Count(a.read(f.path), []byte("\n"))
		keep := n - 1 - a.rng.IntN(n/2)
		a.keepLines(f.path, keep)
		a.add(f.path, f.even(a.rng.IntN(12), 3000))
		if k, again := kept[f.path]; again {
			keep = min(k, keep)
		}
		kept[f.path] = keep
		last = slices.DeleteFunc(last, func(s sight) bool { return s.path == f.path })
		last = append(last, a.look(f))
		a.soon(10 * time.Millisecond)
	}
	return a.hit(func() bool {
		return slices.ContainsFunc(last, func(s sight) bool { return a.lacks(s, kept[s.path]) })
	})
}

// sight is what a transcript held at one moment.
type sight struct {
	crashFile
	lines [][]byte // whole ones
}

func (a *arena) look(f crashFile) sight {
	a.t.Helper()
	lines := bytes.Split(a.read(f.path), []byte("\n"))
	return sight{f, lines[:len(lines)-1]}
}

// lacks says whether the server has other bytes, or none, for a line that was seen, at from or behind it.
func (a *arena) lacks(s sight, from int) bool {
	a.t.Helper()
	if a.plain != nil {
		has := a.plain.lines(s.session)
		for i := from; i < len(s.lines); i++ {
			if !bytes.Equal(has[int64(i)], s.lines[i]) {
				return true
			}
		}
		return false
	}
	has := bytes.Split(a.exact.raw(s.session, ""), []byte("\n"))
	for i := from; i < len(s.lines); i++ {
		if i >= len(has)-1 || !bytes.Equal(has[i], s.lines[i]) {
			return true
		}
	}
	return false
}

// killAcknowledge kills from within the server, right after it has acknowledged a request.
func (a *arena) killAcknowledge() bool {
	a.grow(450) // five requests at least
	a.begin()
	daemon, left := a.d, 1+a.rng.IntN(4)
	var mu sync.Mutex
	a.gate.onAnswer(func() {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			daemon.Signal(os.Kill)
		}
	})
	select {
	case <-daemon.Done():
	case <-time.After(5 * time.Minute):
		a.t.Fatal("the server was not asked often enough")
	}
	a.gate.onAnswer(nil)
	return true
}

// killCompact drains a backlog, so that the file is mostly empty, and kills the daemon during its compaction.
func (a *arena) killCompact() bool {
	a.gate.set(refuse(503))
	a.d = a.daemon()
	f := a.any()
	// Not messages: folds would keep those, and after a hundred kills the file would not be mostly empty any more.
	backlog := bytes.ReplaceAll(incompressible(a.cwd(), 2<<20), []byte(`"type":"user"`), []byte(`"type":"progress"`))
	a.add(f.path, backlog)
	a.until("a backlog is queued", func(s status) bool { return s.Outbox.Stored > 768<<10 })
	was := a.stateFile()
	a.flaky()
	a.ccship("sync") // ends the back-off
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	end := time.After(5 * time.Minute)
	for {
		select {
		case <-tick.C:
		case <-end:
			a.t.Fatalf("no compaction within 5 minutes of a drained backlog; the state folder has %v", a.stateNames())
		}
		if a.compacting() {
			a.d.Pause()
			return a.hit(a.compacting)
		}
		if !os.SameFile(was, a.stateFile()) {
			return a.hit(func() bool { return false }) // it was over between two looks
		}
	}
}

// compacting says whether a half-made copy of the state file is there.
func (a *arena) compacting() bool { return contains("compact", a.stateNames()...) }

// stateFile is which file the state is in: a compaction puts another one in its place.
func (a *arena) stateFile() os.FileInfo { return kit.Try(os.Stat(stateFile(a.home))).Must(a.t) }

func (a *arena) stateNames() []string {
	entries := kit.Try(os.ReadDir(a.state())).Must(a.t)
	var names []string
	for _, entry := range entries {
		names = append(names, filepath.Base(entry.Name()))
	}
	return names
}

// settle ends the trouble and compares everything.
func (a *arena) settle() {
	a.t.Helper()
	a.gate.set(nil)
	a.start()
	a.sync()
	for _, f := range a.files {
		a.same(f.session, f.path)
	}
	a.dead(0)
	a.verified()
}
