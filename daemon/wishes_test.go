package daemon

import (
	"strings"
	"testing"
)

// wish puts one into a server, which then waits for its answer.
func (s *paperServer) wish(id, session, path string, link bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wishes = append(s.wishes, map[string]any{"id": id, "session_id": session, "path": path, "link": link})
}

// answered is the event that names a wish.
func (s *paperServer) answered(session, id string) (documentEvent, bool) {
	for _, e := range s.told(session) {
		if e.Wish == id {
			return e, true
		}
	}
	return documentEvent{}, false
}

// TestWishes does what the viewer of a server on this machine asks for, and answers each wish once.
func TestWishes(t *testing.T) {
	t.Parallel()
	w, s, cwd := newPaperWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	main := "-p/" + sessionA + ".jsonl"
	w.write(main, records(cwd, 0, 3))
	w.start()
	w.sync()
	s.wish("w1", sessionA, "spec.md", true)
	s.wish("w2", sessionA, "../secret", true)
	s.wish("w3", "nobody", "spec.md", true)
	s.wish("w4", sessionA, "spec.md", true)
	s.wish("w5", sessionA, "other.md", false)
	w.write(main, records(cwd, 3, 4)) // its answer says that there are some
	for id, want := range map[string]string{"w1": "linked", "w2": "refused", "w4": "linked", "w5": "refused"} {
		w.until(id+" is answered", func() bool { _, ok := s.answered(sessionA, id); return ok })
		e, _ := s.answered(sessionA, id)
		if e.Change != want || e.By != "viewer" || (e.Reason != "") != (want == "refused") || strings.Contains(e.Reason, "\n") {
			t.Errorf("%s: %+v", id, e)
		}
	}
	if got, _ := s.content(sessionA, "spec.md"); got != "# Spec\n" {
		t.Errorf("content %q", got)
	}
	w.noticed(sessionA, "[Document linked]\n- spec.md")
	s.wish("w6", sessionA, "spec.md", false)
	w.write(main, records(cwd, 4, 5))
	w.until("it is unlinked", func() bool { e, _ := s.answered(sessionA, "w6"); return e.Change == "unlinked" })
	if got, want := s.changes(sessionA, "spec.md"), "linked 1, linked 1, unlinked 2"; got != want {
		t.Errorf("changes: %s, want %s", got, want)
	}
}

// TestWishesFromAfar refuses links, not their ends, to a server on another machine, unless the user allows them.
func TestWishesFromAfar(t *testing.T) {
	for dest, want := range map[string]bool{
		"http://127.0.0.1:5000": true, "http://localhost:5000#/home/kim/shop": true, "http://[::1]:5000/x": true, "http://LOCALHOST.": true,
		"https://ccship.example.org": false, "http://127.0.0.1.example.org": false, "http://localhost.example.org": false,
		"http://user@127.0.0.1@example.org": false, "http://192.168.0.1": false, "": false, "%": false,
	} {
		if got := loopback(dest); got != want {
			t.Errorf("%q is on this machine: %v, want %v", dest, got, want)
		}
	}
}
