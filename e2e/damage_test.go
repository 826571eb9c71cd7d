//go:build unix

package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// The layout of bbolt's pages, as far as the damage needs it.
const (
	pageSize   = 4096
	branchPage = 0x01
	leafPage   = 0x02
	listPage   = 0x10
)

// damages are what happens to the state file of a daemon that uses it.
var damages = []struct {
	name string
	do   func(f *victim) error
}{
	{"page 0 zeroed", func(f *victim) error { return f.zero(0) }},
	{"page 1 zeroed", func(f *victim) error { return f.zero(1) }},
	{"both roots zeroed", func(f *victim) error { return f.zero(0, 1) }},
	{"the newer root copied over by the older", (*victim).olderRoot},
	{"a free page zeroed", func(f *victim) error { return f.zero(f.some(listPage, 1)...) }},
	{"a branch page zeroed", func(f *victim) error { return f.zero(f.some(branchPage, 1)...) }},
	{"a leaf page zeroed", func(f *victim) error { return f.zero(f.some(leafPage, 1)...) }},
	{"many pages zeroed", func(f *victim) error { return f.zero(f.some(branchPage|leafPage, 12)...) }},
	{"pages of noise", func(f *victim) error { return f.noise(f.some(branchPage|leafPage, 6)...) }},
	{"flipped bits", (*victim).flip},
	{"cut in half", func(f *victim) error { return os.Truncate(f.path, f.size()/2/pageSize*pageSize) }},
	{"cut to one page", func(f *victim) error { return os.Truncate(f.path, pageSize) }},
	{"cut to nothing", func(f *victim) error { return os.Truncate(f.path, 0) }},
	{"removed", func(f *victim) error { return os.Remove(f.path) }},
	{"written over by an older copy", (*victim).olderCopy},
	{"replaced by an older copy", (*victim).replaced},
}

// victim is a state file that is to be damaged.
type victim struct {
	path string
	copy []byte // what it was some time before
	rng  *rand.Rand
}

func (f *victim) size() int64 {
	info, err := os.Stat(f.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// some picks up to n pages of the kinds in flags; all kinds when there is none of them.
func (f *victim) some(flags uint16, n int) (pages []int64) {
	b, _ := os.ReadFile(f.path)
	for page := int64(2); (page+1)*pageSize <= int64(len(b)); page++ {
		head := b[page*pageSize:]
		if binary.NativeEndian.Uint64(head) == uint64(page) && binary.NativeEndian.Uint16(head[8:])&flags != 0 {
			pages = append(pages, page)
		}
	}
	if len(pages) == 0 {
		return []int64{2}
	}
	f.rng.Shuffle(len(pages), func(i, j int) { pages[i], pages[j] = pages[j], pages[i] })
	return pages[:min(n, len(pages))]
}

func (f *victim) write(page int64, content []byte) error {
	file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteAt(content, page*pageSize)
	return err
}

func (f *victim) zero(pages ...int64) error {
	for _, page := range pages {
		if err := f.write(page, make([]byte, pageSize)); err != nil {
			return err
		}
	}
	return nil
}

func (f *victim) noise(pages ...int64) error {
	for _, page := range pages {
		content := make([]byte, pageSize)
		for i := range content {
			content[i] = byte(f.rng.Uint32())
		}
		binary.NativeEndian.PutUint64(content, uint64(page)) // or the first look finds it
		binary.NativeEndian.PutUint16(content[8:], leafPage)
		if err := f.write(page, content); err != nil {
			return err
		}
	}
	return nil
}

// flip turns over 64 bits of the used pages.
func (f *victim) flip() error {
	for _, page := range f.some(branchPage|leafPage, 64) {
		b, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		content := b[page*pageSize : (page+1)*pageSize]
		for range 4 {
			content[f.rng.IntN(pageSize)] ^= 1 << f.rng.IntN(8)
		}
		if err := f.write(page, content); err != nil {
			return err
		}
	}
	return nil
}

// olderRoot takes the last transaction back: bbolt reads the valid root with the higher number.
func (f *victim) olderRoot() error {
	b, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	const txid = 16 + 48
	newer := int64(0)
	if binary.NativeEndian.Uint64(b[pageSize+txid:]) > binary.NativeEndian.Uint64(b[txid:]) {
		newer = 1
	}
	return f.write(newer, b[(1-newer)*pageSize:(2-newer)*pageSize])
}

func (f *victim) olderCopy() error { return os.WriteFile(f.path, f.copy, 0o600) }

func (f *victim) replaced() error {
	if err := os.WriteFile(f.path+".put", f.copy, 0o600); err != nil {
		return err
	}
	return os.Rename(f.path+".put", f.path)
}

// TestDamagedInUse damages the state file of a daemon while lines are written: it ends by itself, or goes on and ends
// on request, and afterwards everything on disk is on the server. CCSHIP_TEST=rounds=N is how often each kind
// of damage is done.
func TestDamagedInUse(t *testing.T) {
	t.Parallel()
	rounds := kit.SettingNumber("rounds", 1)
	var mu sync.Mutex
	ends := map[string]int{}
	t.Cleanup(func() { t.Logf("%d runs: %v", rounds*len(damages), ends) })
	for i, damage := range damages {
		t.Run(damage.name, func(t *testing.T) {
			t.Parallel()
			out := &kit.Outcome{Group: "state file", Fault: "damaged in use: " + damage.name}
			kit.Record(t, out)
			d := newDamaged(t, uint64(i))
			for out.Runs < rounds {
				how, told := d.round(damage.do)
				out.Runs++
				out.Hear(told)
				kit.Locked(&mu, func() { ends[how]++ })
				if t.Failed() {
					return
				}
			}
		})
	}
}

// damaged is a home whose state file is damaged again and again.
type damaged struct {
	*world
	rng   *rand.Rand
	talk  *conversation
	files map[string]string // path by stream
	main  string            // the transcript that is written to
}

func newDamaged(t *testing.T, seed uint64) *damaged {
	w := exactWorld(t)
	d := &damaged{world: w, rng: rand.New(rand.NewPCG(seed, 11)), files: map[string]string{}}
	for i := range uint64(40) { // so many that the state has branch pages
		c := newConversation(9000+100*seed+i, w.cwd())
		d.main = w.path(fmt.Sprintf("-work-%d", i%3), c.session+".jsonl")
		d.talk, d.files[c.session] = c, d.main
		w.add(d.main, c.even(6, 900))
	}
	w.startAndSync()
	return d
}

// round damages the file of the running daemon once, and has it run again afterwards. It answers how the daemon ended,
// and what was reported: by the daemon when it ended by itself, and by status when it ran again.
func (d *damaged) round(damage func(*victim) error) (how, told string) {
	d.t.Helper()
	path := filepath.Join(d.state(), "state.db")
	f := &victim{path: path, copy: d.read(path), rng: d.rng}
	if d.rng.IntN(2) == 0 {
		d.gate.set(refuse(503)) // rows wait in the outbox
	}
	d.write(10)
	must(d.t, damage(f))
	d.write(15)
	if how = d.end(); d.d.Code() != 0 {
		told = "ended: " + kit.LastWords(d.d.Log.String()) + "; "
	}
	d.gate.set(nil)
	d.start()
	told += "when it runs again: " + d.advised()
	d.sync()
	for stream, path := range d.files {
		d.same(stream, path)
	}
	d.verified()
	return how, kit.Plain(strings.ReplaceAll(told, d.dir, "~"))
}

// advised is what status advises first.
func (d *damaged) advised() string {
	var known struct{ Advice []struct{ Text string } }
	must(d.t, json.Unmarshal([]byte(d.ccship("status", "--json").stdout), &known))
	if len(known.Advice) == 0 {
		return "nothing"
	}
	return known.Advice[0].Text
}

// write adds a few lines with a little time between them.
func (d *damaged) write(lines int) {
	for range lines {
		d.add(d.main, d.talk.line(900))
		pass(time.Duration(d.rng.IntN(40)) * time.Millisecond)
	}
}

// end gives the daemon time to end by itself, and stops it then. It must not hang, and must not hide what happened.
func (d *damaged) end() (how string) {
	d.t.Helper()
	select {
	case <-d.d.Done():
	case <-time.After(time.Second):
		d.d.Signal(syscall.SIGTERM)
		how = "when told to, "
	}
	select {
	case <-d.d.Done():
	case <-time.After(5 * time.Minute):
		d.d.Signal(syscall.SIGQUIT)
		d.d.Kill()
		d.t.Fatalf("the daemon hangs:\n%s", kit.Tail(d.d.Log.String(), 30000))
	}
	code := d.d.Code()
	switch log := d.d.Log.String(); {
	case code == 0 && how == "":
		d.t.Errorf("it ended by itself, with code 0:\n%s", kit.Tail(log, 4000))
	case contains("goroutine ", log):
		how += "with a trace, "
		start := max(strings.Index(log, "panic: "), strings.Index(log, "fatal error: "), strings.Index(log, "fault"), 0)
		d.t.Logf("%.4000s", log[start:])
	}
	return how + "code " + strconv.Itoa(code)
}
