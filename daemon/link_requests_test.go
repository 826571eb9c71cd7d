package daemon

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// request puts a link request into a server, which then waits for the answer.
func (s *documentServer) request(id, session, path string, link bool) {
	kit.Locked(&s.mu, func() {
		s.requests = append(s.requests, map[string]any{"id": id, "session_id": session, "path": path, "link": link})
	})
}

// answered is the event that answers a link request.
func (s *documentServer) answered(session, id string) (documentEvent, bool) {
	for _, e := range s.told(session) {
		if e.RequestID == id {
			return e, true
		}
	}
	return documentEvent{}, false
}

// TestLinkRequestsNeedConsent: a server has nothing linked before the user allows it, wherever it seems to run: what
// listens on a loopback port may be another user's program, or the end of a tunnel.
func TestLinkRequestsNeedConsent(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	s.request("w1", sessionA, "spec.md", true)
	w.write("-p/"+sessionA+".jsonl", records(cwd, 3, 4)) // its answer says that there is one
	w.until("the request is answered", func() bool { _, ok := s.answered(sessionA, "w1"); return ok })
	e, _ := s.answered(sessionA, "w1")
	kit.Check(t, e.Change == "refused" && strings.Contains(e.Reason, "viewer_links"), "a server on this machine has a file linked: %+v", e)
	got, _ := s.content(sessionA, "spec.md")
	kit.Check(t, got == "", "it has the content %q", got)
}

// TestLinkRequests does what the viewer of a server asks for that the user allows, and answers each request once.
func TestLinkRequests(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	w.cfg.ViewerLinks = true
	main := "-p/" + sessionA + ".jsonl"
	w.startWith(main, records(cwd, 0, 3))
	s.request("w1", sessionA, "spec.md", true)
	s.request("w2", sessionA, "../secret", true)
	s.request("w3", "nobody", "spec.md", true)
	s.request("w4", sessionA, "spec.md", true)
	s.request("w5", sessionA, "other.md", false)
	w.write(main, records(cwd, 3, 4)) // its answer says that there are some
	for id, want := range map[string]string{"w1": "linked", "w2": "refused", "w4": "linked", "w5": "refused"} {
		w.until(id+" is answered", func() bool { _, ok := s.answered(sessionA, id); return ok })
		e, _ := s.answered(sessionA, id)
		kit.Check(t, e.Change == want && e.By == "viewer" && (e.Reason != "") == (want == "refused") && !strings.Contains(e.Reason, "\n"),
			"%s: %+v", id, e)
	}
	got, _ := s.content(sessionA, "spec.md")
	kit.Check(t, got == "# Spec\n", "content %q", got)
	w.noticed(sessionA, "[Document linked]\n- spec.md")
	s.request("w6", sessionA, "spec.md", false)
	w.write(main, records(cwd, 4, 5))
	w.until("it is unlinked", func() bool { e, _ := s.answered(sessionA, "w6"); return e.Change == "unlinked" })
	kit.Equal(t, "changes", s.changes(sessionA, "spec.md"), "linked 1, linked 1, unlinked 2")
}
