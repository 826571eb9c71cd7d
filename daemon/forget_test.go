package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func (w *world) forget(session string) (control.ForgetResult, error) {
	w.t.Helper()
	return w.client.Forget(context.Background(), control.ForgetRequest{Session: session})
}

// streams are the names of what the server has.
func (w *world) streams() []string {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	names := []string{}
	for name := range w.server.streams {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestForget removes a session and its agents, keeps the files, and never sends what is written to them later: not at
// once, not after a restart, and not after the state was lost.
func TestForget(t *testing.T) {
	w := newWorld(t)
	main := w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	agent := w.write("-p/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 3))
	w.startWith("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 4))
	r, err := w.forget(sessionA)
	kit.Require(t, err == nil && r.Transcripts == 2 && r.Lines == 8 && len(r.Pending)+len(r.Kept) == 0 &&
		(slices.Equal(r.OnDisk, []string{main, agent}) || slices.Equal(r.OnDisk, []string{agent, main})),
		"forget: %+v, %v", r, err)
	for _, when := range []string{"at once", "after a restart", "after the state was lost"} {
		switch when {
		case "after a restart":
			w.restart()
		case "after the state was lost":
			w.stop()
			kit.Must(t, os.Remove(filepath.Join(w.cfg.StateDir, "state.db")))
			w.start()
			w.sync() // learns it from the server
		}
		w.write("-p/"+sessionA+".jsonl", record("/home/kim/shop", 9))
		w.write("-p/"+sessionA+"/subagents/agent-new.jsonl", records("/home/kim/shop", 0, 2))
		w.write("-p/"+sessionB+".jsonl", record("/home/kim/shop", 9))
		s := w.sync()
		kit.Check(t, s.Done, "%s: sync: %+v", when, s)
		w.server.mu.Lock()
		lost := when == "after the state was lost"
		kit.Check(t, w.server.resent > 0 == lost, "%s: %d requests about what was forgotten", when, w.server.resent)
		w.server.mu.Unlock()
		got := w.streams()
		kit.Check(t, slices.Equal(got, []string{sessionB}), "%s the server has %v", when, got)
		w.until("nothing waits", func() bool { return w.status().Outbox.Entries == 0 })
		v := w.verify()
		kit.Check(t, v.Equal, "%s: verify: %+v", when, v.Differences)
	}
	_, err = os.Stat(main)
	kit.Check(t, err == nil, "the file on disk: %v", err)
	excluded := w.status().Files.Excluded
	kit.Check(t, excluded >= 2, "%d transcripts are excluded", excluded)
}

// TestForgetWaiting drops what waits and what was refused, and tells a server that is down as soon as it is back.
func TestForgetWaiting(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.server.with(func() { w.server.status = http.StatusServiceUnavailable })
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 5, 9))
	w.until("lines wait", func() bool { return w.status().Outbox.Entries == 4 })
	r, err := w.forget(sessionA)
	kit.Check(t, err == nil && r.Waiting == 4 && len(r.Pending) == 1 && r.Detail != "", "forget: %+v, %v", r, err)
	kit.Equal(t, "entries wait", w.status().Outbox.Entries, 0)
	s, err := w.client.Sync(t.Context(), control.SyncRequest{}) // the server still does not answer
	kit.Check(t, err == nil && s.Lines == 9 && s.Excluded == 9 && s.Acknowledged == 0, "sync: %+v, %v", s, err)
	w.server.with(func() { w.server.status = 0 })
	w.stop()
	w.start() // does not wait out its patience
	w.until("the server is told", func() bool { return len(w.streams()) == 0 })
}

// TestForgetSilent does not wait for a server that never answers: others forget, and that one is told once it answers.
func TestForgetSilent(t *testing.T) {
	w := newWorld(t)
	theirs := newMemServer()
	web := httptest.NewServer(theirs)
	t.Cleanup(web.Close)
	project := t.TempDir()
	kit.WriteFile(t, filepath.Join(project, ".codetracker", "config.json"), fmt.Sprintf(`{"server_url":%q}`, web.URL))
	kit.WriteFile(t, filepath.Join(project, ".codetracker", "credentials.json"), `{"api_key":"theirs","current_project_hash":"h4sh"}`)
	answers := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answers) })
	t.Cleanup(answer)
	w.server.forgetting = func() { <-answers }
	w.cfg.TrustedProjects = []string{project}
	w.write("-p/"+sessionA+".jsonl", records(project, 0, 5))
	w.startWith("-q/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 3))
	kit.Require(t, len(w.streams()) == 1, "the user's server has %v", w.streams())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := w.client.Forget(ctx, control.ForgetRequest{Session: sessionA})
	kit.Check(t, err == nil && r.Lines == 5 && slices.Equal(r.Pending, []string{w.cfg.ServerURL}) &&
		strings.Contains(r.Detail, "no answer for 10s"), "forget: %+v, %v", r, err)
	answer()
	w.until("the server is told", func() bool { return len(w.streams()) == 0 })
}

// TestForgetNobody leaves no note behind for what never was.
func TestForgetNobody(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.send("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	for _, name := range []string{"never-was", sessionA[:8]} {
		_, err := w.forget(name)
		var e *control.Error
		kit.Check(t, errors.As(err, &e) && e.Code == control.CodeNoSession, "forget %q: %v", name, err)
	}
	w.send("-p/never-was.jsonl", records("/home/kim/shop", 0, 5))
	got := w.streams()
	kit.Check(t, len(got) == 2, "the server has %v", got)
}

// TestForgetHistory keeps the prompts of a forgotten session out of what is sent of the prompt history from then on.
func TestForgetHistory(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.must(w.forget(sessionA))
	w.send("../history.jsonl", `{"display":"secret","project":"/home/kim/shop","sessionId":"`+sessionA+"\"}\n"+`{"display":"other","project":"/home/kim/shop","sessionId":"`+sessionB+"\"}\n")
	got := w.server.newest(w.historyStream())
	kit.Check(t, !strings.Contains(got, "secret") && strings.Contains(got, "other"), "the history on the server: %q", got)
	v := w.verify()
	kit.Check(t, v.Equal, "verify: %+v", v)
}

// TestForgottenElsewhere takes in what another machine, or the server's owner, had forgotten: verify does not miss it.
func TestForgottenElsewhere(t *testing.T) {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.write("-p/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 3))
	w.startWith("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 4))
	w.server.mu.Lock()
	w.server.forgotten = map[string]bool{sessionA: true}
	delete(w.server.streams, sessionA)
	delete(w.server.streams, sessionA+"/agent-a1")
	w.server.mu.Unlock()
	v := w.verify()
	kit.Check(t, v.Equal && v.ExcludedFiles == 2 && v.Files == 1, "verify: %+v", v)
	w.send("-p/"+sessionA+".jsonl", record("/home/kim/shop", 9))
	kit.Equal(t, "transcripts are excluded", w.status().Files.Excluded, 2)
	w.restart()
	w.until("it is known after a restart", func() bool { return w.status().Files.Excluded == 2 })
}

// TestForgetRefused says that a server keeps what it has, and does not ask it again.
func TestForgetRefused(t *testing.T) {
	w := newWorld(t)
	w.server.keeps = true
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	r, err := w.forget(sessionA)
	kit.Check(t, err == nil && len(r.Kept) == 1 && len(r.Pending) == 0 && strings.Contains(r.Detail, "not yours"),
		"forget: %+v, %v", r, err)
}

// TestForgetProxy asks again: while the server is away, what a proxy answers in its place removes nothing.
func TestForgetProxy(t *testing.T) {
	for how, proxy := range map[string]struct {
		status int
		says   string
	}{
		"a proxy without a server":  {http.StatusNotFound, "404 page not found"},
		"a page that says that":     {http.StatusOK, "<html>Sorry, we are down</html>"},
		"another program's success": {http.StatusOK, `{"ok":true}`},
		"nothing":                   {http.StatusOK, "null"},
	} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
			w.server.with(func() { w.server.status, w.server.says, w.server.announces = proxy.status, proxy.says, false })
			r, err := w.forget(sessionA)
			kit.Check(t, err == nil && len(r.Pending) == 1 && len(r.Kept) == 0 && r.Detail != "", "forget: %+v, %v", r, err)
			w.server.with(func() { w.server.status, w.server.announces = 0, true })
			w.stop()
			w.start() // does not wait out its patience
			w.until("the server is told", func() bool { return len(w.streams()) == 0 })
		})
	}
}
