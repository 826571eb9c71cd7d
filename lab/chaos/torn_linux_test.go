package chaos

import (
	"context"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

const pageSize = 4096

// change is one thing that the daemon did to its state file.
type change struct {
	kind uint64
	at   int64
	data []byte
}

// TestTorn records what a daemon writes to its state file, and reopens the file as it is when the power goes at each page
// of each write: it holds the transaction before, or the one after, and is never set aside. Of some the real daemon goes
// on.
func TestTorn(t *testing.T) {
	t.Parallel()
	enough, every := 300, 100
	if !kit.IsQuick() {
		enough, every = kit.SettingNumber("tears", 5000), 50
	}
	out := &kit.Outcome{Group: "state file", Fault: "torn at each page of each write, the daemon goes on"}
	opened := &kit.Outcome{Group: "state file", Fault: "torn at each page of each write, reopened"}
	kit.Record(t, out)
	kit.Record(t, opened)
	r := mountedRoom("state")(t, out)
	r.start()
	r.proof()
	out.Recovery = nil
	base, changes := r.recordState(enough)
	tear := &tearing{t: t, out: opened, path: filepath.Join(r.dir, "torn.db")}
	tear.all(base, changes, enough, func(image []byte) {
		if opened.Runs%every != 0 {
			return
		}
		r.stop()
		kit.Must(t, os.WriteFile(r.mount.behind(filepath.Join(r.state(), "state.db")), image, 0o600))
		r.over()
		r.proof()
		out.Runs++
		out.Hear(r.plain(kit.Headline(r.ccship("status").text())))
	})
	r.stop()
}

// recordState has a daemon work, with and without its server, until the tears are enough: one at each page, one within.
func (r *room) recordState(enough int) (base []byte, changes []change) {
	r.t.Helper()
	r.stop()
	base = kit.Try(os.ReadFile(r.mount.behind(filepath.Join(r.state(), "state.db")))).Must(r.t)
	log := filepath.Join(r.dir, "record")
	r.mount.set(spoil{File: "state.db", Record: log})
	r.start()
	for round := 0; pages(changes)*2 < enough; round++ {
		if round%3 == 1 {
			r.door.set(respond(503, "application/json", `{"error":{"code":"busy"}}`))
		} else {
			r.door.set(nil)
		}
		for begin := time.Now(); time.Since(begin) < 2*time.Second; {
			r.write(2)
			r.soon(20 * time.Millisecond)
		}
		changes = readChanges(r.t, log)
	}
	r.door.set(nil)
	r.stop()
	r.mount.clean()
	return base, readChanges(r.t, log)
}

func pages(changes []change) (n int) {
	for _, c := range changes {
		n += (len(c.data) + pageSize - 1) / pageSize
	}
	return n
}

func readChanges(t testing.TB, path string) (all []change) {
	t.Helper()
	b := kit.Try(os.ReadFile(path)).Must(t)
	for len(b) >= 24 {
		c := change{binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:])), nil}
		n := int(binary.LittleEndian.Uint64(b[16:]))
		if b = b[24:]; len(b) < n {
			break // it is being written
		}
		c.data, b = b[:n], b[n:]
		all = append(all, c)
	}
	return all
}

// tearing opens a state file as it is after each tear.
type tearing struct {
	t     *testing.T
	out   *kit.Outcome
	path  string
	image []byte
}

// content is what counts of a state: how far each transcript is read.
type content map[tail.FileID]tail.Cursor

func (x *tearing) all(base []byte, changes []change, enough int, also func(image []byte)) {
	x.t.Helper()
	x.image = append([]byte(nil), base...)
	before := x.open()
	for from := 0; from < len(changes) && x.out.Runs < enough && !x.t.Failed(); {
		to := from // the changes up to the next fsync reach the disk in any order
		for to < len(changes) && changes[to].kind != recordSync {
			to++
		}
		start := append([]byte(nil), x.image...)
		for _, c := range changes[from:to] {
			x.apply(c)
		}
		end := append([]byte(nil), x.image...)
		after := x.open()
		for i, c := range changes[from:to] {
			x.tears(start, changes[from:from+i], c, before, after, also)
		}
		x.image, before, from = end, after, to+1
	}
}

// tears opens the file with the changes that came before, and a part of the next one: its first pages, and some sectors.
func (x *tearing) tears(start []byte, done []change, c change, before, after content, also func(image []byte)) {
	x.t.Helper()
	for at := 0; at < len(c.data); at += pageSize {
		for _, cut := range []int{at, min(at+512*(1+at/pageSize%7), len(c.data))} {
			x.image = append(x.image[:0], start...)
			for _, d := range done {
				x.apply(d)
			}
			x.apply(change{recordWrite, c.at, c.data[:cut]})
			got := x.open()
			x.out.Runs++
			if !maps.Equal(got, before) && !maps.Equal(got, after) {
				x.out.Lost++
				x.t.Errorf("write of %d bytes at %d, torn at %d: neither the state before nor the one after: %v", len(c.data), c.at, cut, got)
				return
			}
			also(x.image)
		}
	}
}

func (x *tearing) apply(c change) {
	switch end := c.at + int64(len(c.data)); c.kind {
	case recordSize:
		x.image = append(x.image, make([]byte, max(0, c.at-int64(len(x.image))))...)[:c.at]
	case recordWrite:
		x.image = append(x.image, make([]byte, max(0, end-int64(len(x.image))))...)
		copy(x.image[c.at:], c.data)
	}
}

// open opens a copy of the image: opening writes.
func (x *tearing) open() content {
	x.t.Helper()
	kit.Must(x.t, os.WriteFile(x.path, x.image, 0o600))
	plenty := func(string) (uint64, uint64, error) { return 1 << 40, 1 << 41, nil }
	db, err := state.Open(context.Background(), state.Options{Path: x.path, NoWait: true, FreeDisk: plenty})
	if err != nil {
		x.out.Hung++
		x.t.Fatalf("it can't be opened: %v", err)
	}
	for _, a := range db.Advice() {
		x.out.Hear(a.Kind)
		x.out.Lost++
		x.t.Errorf("it is set aside: %s", a.Text)
	}
	files := kit.Try(db.Files.Load(context.Background())).Must(x.t)
	kit.Must(x.t, db.Close())
	found := content{}
	for _, f := range files {
		found[f.File.ID] = f.Cursor
	}
	return found
}
