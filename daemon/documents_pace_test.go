package daemon

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ccship/ccship/state"
)

// TestQuiet finds by one call of the system that nothing has happened, and only then.
func TestQuiet(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	x := g.d.documents
	quiet := func(what string, want bool) {
		t.Helper()
		x.work.Lock()
		defer x.work.Unlock()
		s, err := g.d.siteOf(t.Context(), sessionA)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.quiet(s); got != want {
			t.Errorf("%s: quiet %v, want %v", what, got, want)
		}
	}
	settle := func() {
		t.Helper()
		g.look("a.md")
		g.until("its stamp proves it", func() bool { return !g.look("a.md").doubtful })
	}
	path := saveFile(t, g.cwd, "a.md", "one")
	g.linkNow("a.md")
	quiet("written just now", false)
	settle()
	quiet("settled", true)
	saveFile(t, g.cwd, "a.md", "three")
	quiet("changed", false)
	settle()
	quiet("read", true)
	p := g.look("a.md")
	p.since = time.Now()
	x.put(p, false)
	quiet("it was being written", false)
	g.look("a.md")
	quiet("it was not", true)
	next := saveFile(t, g.cwd, "b.md", "three")
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	quiet("another file in its place", false)
	settle()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	quiet("away", false)
	g.look("a.md")
	quiet("away for one look", false)
	g.look("a.md")
	quiet("deleted", true)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	quiet("a folder in its place", false)
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("again"), 0o600)); err != nil {
		t.Fatal(err)
	}
	settle()
	p = g.look("a.md")
	p.Dest = ""
	x.put(p, false)
	quiet("to be sent", false)
	g.look("a.md")
	quiet("sent", true)
	saveFile(t, g.cwd, ".ccshipignore", "")
	g.d.projects.Recheck, x.optouts = 0, nil
	quiet("excluded", false)
	g.look("a.md")
	quiet("excluded, and said so", true)
	if err := x.unlink(t.Context(), linkage{session: sessionA, path: "a.md", by: byUser, line: -1}); err != nil {
		t.Fatal(err)
	}
	quiet("unlinked, to be told to nobody", true)
}

// TestPace looks more rarely the more there is to be looked at, within bounds, and soon where something happens.
func TestPace(t *testing.T) {
	t.Parallel()
	const cost = 100 * time.Microsecond
	now := time.Now()
	x := newDocuments(nil, nil, nil)
	add := func(n int, active time.Time) (last *shelf) {
		for range n {
			last = x.shelf(strconv.Itoa(len(x.shelves)))
			last.papers["a.md"], last.active, last.cost = paper{}, active, cost
		}
		return last
	}
	is := func(what string, of *shelf, soon bool, want time.Duration) {
		t.Helper()
		if got := x.pace(of, soon); got != want {
			t.Errorf("%s: every %v, want %v", what, got, want)
		}
	}
	hot := add(1, now)
	is("one", hot, false, hotLook)
	add(59, now)
	is("sixty", hot, false, 12*time.Second)
	is("one of sixty that is being written", hot, true, hotLook)
	if x.hot != 12*time.Second {
		t.Errorf("what is stirred is looked at within %v", x.hot)
	}
	add(500, now)
	is("hundreds", hot, false, warmLook)
	warm := add(1, now.Add(-hotFor))
	is("one of yesterday", warm, false, warmLook)
	add(599, now.Add(-hotFor))
	is("hundreds of yesterday", warm, false, 2*time.Minute)
	cold := add(9, now.Add(-warmFor))
	is("old ones", cold, false, coldLook)
	x.born = now
	if end := x.after(12 * time.Second); end.Sub(now)%hotLook != 0 || end.Before(now.Add(12*time.Second)) {
		t.Errorf("a pause of twelve seconds ends after %v", end.Sub(now))
	}
	for _, s := range x.shelves {
		s.papers["a.md"] = paper{Document: state.Document{Dest: "told"}}
	}
	is("when all are unlinked", hot, false, hotLook)
}

// TestCost believes a look that a busy machine delayed only little by little, and a quick one at once.
func TestCost(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	s.took(time.Second)
	if s.cost > 2*firstCost {
		t.Errorf("%v after a look that was delayed", s.cost)
	}
	for range 200 {
		s.took(time.Millisecond)
	}
	if s.cost != time.Millisecond {
		t.Errorf("%v after many looks of a millisecond", s.cost)
	}
	if s.took(10 * time.Microsecond); s.cost != 10*time.Microsecond {
		t.Errorf("%v after a quick look", s.cost)
	}
}
