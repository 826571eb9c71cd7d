package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func (w *world) sessions(q control.SessionsQuery) control.Sessions {
	w.t.Helper()
	return kit.Try(w.client.Sessions(w.t.Context(), q)).Must(w.t)
}

func TestSessions(t *testing.T) {
	w := newWorld(t)
	out := t.TempDir()
	tracked(t, out, "config.json", `{"conversation_tracking":{"enabled":false}}`)
	w.write("-home-kim-shop/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.write("-home-kim-shop/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 2))
	w.write("-home-kim-shop/"+sessionA+"/subagents/workflows/r/agent-a2.jsonl", records("/home/kim/shop", 0, 2))
	w.write("-home-kim-shop/agent-old.jsonl", records("/home/kim/shop", 0, 1))
	w.write("-home-kim-shop-sub/"+sessionB+".jsonl", records("/home/kim/shop/sub", 0, 300))
	w.write("-out/0c.jsonl", records(out, 0, 3))
	w.write("../history.jsonl", "{}\n")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	kit.Must(t, os.Chtimes(filepath.Join(w.root, "-home-kim-shop", sessionA+".jsonl"), old, old))
	w.deliver()
	all := w.sessions(control.SessionsQuery{})
	c := all.Census
	kit.Check(t, c.Projects == 3 && c.Sessions == 3 && c.Agents == 3 && c.Bytes == w.status().Files.Bytes && len(c.Largest) == 3,
		"census: %+v", c)
	if p := c.Largest[0]; p.Project != "sub" || p.Cwd != "/home/kim/shop/sub" || p.Sessions != 1 || p.Bytes != int64(len(records("/home/kim/shop/sub", 0, 300))) {
		t.Errorf("largest project: %+v", p)
	}
	kit.Require(t, all.Matching == 3 && all.Next == 0 && len(all.Sessions) == 3 && all.Sessions[2].Session == sessionA,
		"sessions: %+v", all)
	a := all.Sessions[2]
	kit.Check(t, a.Project == "shop" && a.Cwd == "/home/kim/shop" && a.Lines == 5 && a.Acknowledged == 5 &&
		a.Waiting == 0 && a.Agents == 3 && a.ChangedAt.Equal(old) && a.Server == w.cfg.ServerURL && a.ReadBytes == a.Bytes &&
		a.Excluded == "",
		"session: %+v", a)
	for _, s := range all.Sessions[:2] {
		kit.Check(t, (s.Excluded != "") == (s.Session == "0c") && (s.Session != "0c" || s.Acknowledged == 0),
			"session: %+v", s)
	}
	for project, want := range map[string]int{"shop": 1, "/home/kim/shop": 2, "/home/kim/shop/sub": 1, "/home": 2, "/home/ki": 0, "-out": 1, "nobody": 0, "..": 0} {
		got := w.sessions(control.SessionsQuery{Project: project})
		kit.Check(t, got.Matching == want && len(got.Sessions) == want, "project %s: %d sessions, want %d", project, got.Matching, want)
	}
	first := w.sessions(control.SessionsQuery{Page: control.Page{Limit: 2}})
	rest := w.sessions(control.SessionsQuery{Page: control.Page{Offset: first.Next, Limit: 2}})
	kit.Check(t, len(first.Sessions) == 2 && first.Next == 2 && len(rest.Sessions) == 1 && rest.Next == 0 && rest.Sessions[0] == a,
		"pages: %+v and %+v", first, rest)
	beyond := w.sessions(control.SessionsQuery{Page: control.Page{Offset: 99}})
	kit.Check(t, len(beyond.Sessions) == 0 && beyond.Matching == 3, "beyond the end: %+v", beyond)
}

// TestAskedAllTheTime delivers what is written while others ask for everything again and again.
func TestAskedAllTheTime(t *testing.T) {
	w := newWorld(t)
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	for _, ask := range []func() error{
		func() error { _, err := w.client.Sessions(ctx, control.SessionsQuery{}); return err },
		func() error { _, err := w.client.Outbox(ctx, control.Page{}); return err },
		func() error { _, err := w.client.Excludes(ctx); return err },
		func() error { _, err := w.client.Reload(ctx); return err },
		func() error { _, err := w.client.Flush(ctx); return err },
	} {
		asking.Go(func() {
			for ctx.Err() == nil {
				err := ask()
				kit.Check(t, err == nil || ctx.Err() != nil, "%v", err)
			}
		})
	}
	want := ""
	for n := range 20 {
		w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", n, n+1))
		w.write(fmt.Sprintf("-q%d/%s-%d.jsonl", n%3, sessionB[:30], n), records("/home/kim/other", 0, 3))
		want += records("/home/kim/shop", n, n+1)
	}
	w.until("all of it arrives", func() bool { return w.server.newest(sessionA) == want })
	r := w.verify()
	kit.Check(t, r.Equal && r.Files == 21, "verify: %+v", r)
}

// TestCensusOfCopies: a session and its agent whose files lie in two folders are one session, one agent, one project.
func TestCensusOfCopies(t *testing.T) {
	w := newWorld(t)
	for _, folder := range []string{"-home-kim-shop/", "-home-kim-copy/"} {
		w.write(folder+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
		w.write(folder+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 2))
	}
	w.write("-srv-shop/"+sessionB+".jsonl", records("/srv/shop", 0, 1))
	w.deliver()
	c := w.sessions(control.SessionsQuery{}).Census
	kit.Check(t, c.Sessions == 2 && c.Agents == 1 && c.Projects == 2 && len(c.Largest) == 2 && c.Largest[0].Sessions == 1 &&
		c.Bytes == c.Largest[0].Bytes+c.Largest[1].Bytes, "%+v", c)
}

// TestCensusOfMoved: a session whose file lies in the folders of two projects counts in that of its newest file.
func TestCensusOfMoved(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "new": time.Hour, "older": 3 * time.Hour} {
		path := w.write("-home-kim-"+name+"/"+sessionA+".jsonl", records("/home/kim/"+name, 0, 5))
		kit.Must(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	w.deliver()
	for range 10 {
		c := w.sessions(control.SessionsQuery{}).Census
		kit.Check(t, c.Sessions == 1 && c.Projects == 3, "%+v", c)
		for _, p := range c.Largest {
			kit.Equal(t, "sessions of "+p.Cwd, p.Sessions == 1, p.Cwd == "/home/kim/new")
		}
	}
}
