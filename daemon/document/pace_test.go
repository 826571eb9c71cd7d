package document

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/projection"
)

// TestUnchanged finds by one call of the system that nothing has happened, and only then.
func TestUnchanged(t *testing.T) {
	h := newHarness(t)
	unchanged := func(what string, want bool) {
		t.Helper()
		h.work.Lock()
		defer h.work.Unlock()
		s := kit.Try(h.Locate(t.Context(), sessionA)).Must(t)
		got := h.unchanged(s)
		kit.Check(t, got == want, "%s: unchanged %v, want %v", what, got, want)
	}
	settle := func() {
		t.Helper()
		h.check("a.md")
		h.until("its stamp proves it", func() bool { return !h.check("a.md").unproven })
	}
	path := h.saveLinked("a.md", "one")
	unchanged("written just now", false)
	settle()
	unchanged("settled", true)
	saveFile(t, h.cwd, "a.md", "three")
	unchanged("changed", false)
	settle()
	unchanged("read", true)
	p := h.check("a.md")
	p.changingSince = time.Now()
	h.put(p, false)
	unchanged("it was being written", false)
	h.check("a.md")
	unchanged("it was not", true)
	next := saveFile(t, h.cwd, "b.md", "three")
	kit.Must(t, os.Rename(next, path))
	unchanged("another file in its place", false)
	settle()
	kit.Must(t, os.Remove(path))
	unchanged("away", false)
	h.check("a.md")
	unchanged("missing at one check", false)
	h.check("a.md")
	unchanged("deleted", true)
	kit.Must(t, os.Mkdir(path, 0o700))
	unchanged("a folder in its place", false)
	kit.Must(t, errors.Join(os.Remove(path), os.WriteFile(path, []byte("again"), 0o600)))
	settle()
	p = h.check("a.md")
	p.Dest = ""
	h.put(p, false)
	unchanged("to be sent", false)
	h.check("a.md")
	unchanged("sent", true)
	saveFile(t, h.cwd, ".ccshipignore", "")
	h.projects.Recheck, h.policies = 0, nil
	unchanged("excluded", false)
	h.check("a.md")
	unchanged("excluded, and said so", true)
	kit.Must(t, h.unlink(t.Context(), linkRequest{session: sessionA, path: "a.md", by: byUser, line: -1}))
	unchanged("unlinked, to be told to nobody", true)
}

// TestPace checks less often the more documents there are, within bounds, and soon where something happens.
func TestPace(t *testing.T) {
	t.Parallel()
	const cost = 100 * time.Microsecond
	now := time.Now()
	h := newTracker(Deps{})
	add := func(n int, active time.Time) (last *sessionDocuments) {
		for range n {
			last = h.session(strconv.Itoa(len(h.sessions)))
			last.documents["a.md"], last.active, last.cost = trackedDocument{}, active, cost
		}
		return last
	}
	is := func(what string, of *sessionDocuments, soon bool, want time.Duration) {
		t.Helper()
		got := h.pause(of, soon)
		kit.Check(t, got == want, "%s: every %v, want %v", what, got, want)
	}
	hot := add(1, now)
	is("one", hot, false, shortInterval)
	add(59, now)
	is("sixty", hot, false, 12*time.Second)
	is("one of sixty that is being written", hot, true, shortInterval)
	kit.Check(t, h.activeInterval == 12*time.Second, "what is active is checked within %v", h.activeInterval)
	add(500, now)
	is("hundreds", hot, false, middleInterval)
	warm := add(1, now.Add(-shortFor))
	is("one of yesterday", warm, false, middleInterval)
	add(599, now.Add(-shortFor))
	is("hundreds of yesterday", warm, false, 2*time.Minute)
	cold := add(9, now.Add(-middleFor))
	is("old ones", cold, false, longInterval)
	h.started = now
	end := h.pauseEnd(12 * time.Second)
	kit.Check(t, end.Sub(now)%shortInterval == 0 && !end.Before(now.Add(12*time.Second)), "a pause of twelve seconds ends after %v", end.Sub(now))
	for _, s := range h.sessions {
		s.documents["a.md"] = trackedDocument{Document: projection.Document{Dest: "told"}}
	}
	is("when all are unlinked", hot, false, shortInterval)
}

// TestCost takes in a check that a busy machine delayed little by little, and a quick one at once.
func TestCost(t *testing.T) {
	t.Parallel()
	s := &sessionDocuments{}
	s.addCost(time.Second)
	kit.Check(t, s.cost <= 2*firstCost, "%v after a check that was delayed", s.cost)
	for range 200 {
		s.addCost(time.Millisecond)
	}
	kit.Check(t, s.cost == time.Millisecond, "%v after many checks of a millisecond", s.cost)
	if s.addCost(10 * time.Microsecond); s.cost != 10*time.Microsecond {
		t.Errorf("%v after a quick check", s.cost)
	}
}

// TestActivityDuringVisit keeps what happens in a session while its documents are checked: they are checked again soon.
func TestActivityDuringVisit(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.md", "x")
	h.onLocate = func() { h.noteActivity(sessionA, nil) }
	h.visit(t.Context(), sessionA)
	if s := h.sessions[sessionA]; time.Since(s.active) > time.Minute || time.Until(s.due) > shortInterval {
		t.Errorf("active at %v, checked again in %v", s.active, time.Until(s.due))
	}
}
