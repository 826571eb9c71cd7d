//go:build unix

package e2e

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// age makes what the server has of a session older, while it is stopped.
func (w *world) age(days int64, session string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.exact.database()+"?_pragma=busy_timeout(60000)")
	must(w.t, err)
	for _, query := range []string{
		`UPDATE streams SET last_received = last_received - ?1 WHERE session_id = ?2`,
		`UPDATE generations SET first_seen = first_seen - ?1
WHERE stream IN (SELECT id FROM streams WHERE session_id = ?2)`,
	} {
		_, err := db.Exec(query, days*24*60*60*1e6, session)
		must(w.t, err)
	}
	must(w.t, db.Close())
}

// retired is what the server says of a session that rules dropped.
type retired struct {
	Retention struct {
		RetiredAt *string `json:"retired_at"`
		Rule      string
		Lines     int64
	}
}

func (w *world) retired(session string) (r retired) {
	w.t.Helper()
	code, body := w.exact.get("/api/sessions/" + session)
	if code != http.StatusOK {
		w.t.Fatalf("%s: %d %s", session, code, body)
	}
	must(w.t, json.Unmarshal(body, &r))
	return r
}

// TestRetention: rules drop a session and what rewinds left of another one. The daemon's machine still proves all of it,
// and sends nothing of it again: not as it goes on, not after a restart, not without its state. New lines come as ever.
func TestRetention(t *testing.T) {
	w := aloneWorld(t)
	sessions, paths := map[string]*conversation{}, map[string]string{}
	old := filepath.Join(filepath.Dir(w.cwd()), "old")
	must(t, os.MkdirAll(old, 0o700))
	for i, name := range []string{"dropped", "rewound", "held", "recent"} {
		c := newConversation(uint64(90+i), map[bool]string{true: old, false: w.cwd()}[i%2 == 0])
		sessions[name], paths[name] = c, w.path("-work-shop", c.session+".jsonl")
		w.add(paths[name], c.even(60, 3000))
	}
	w.startAndSync()
	for _, name := range []string{"dropped", "rewound"} {
		w.keepLines(paths[name], 40)
		w.add(paths[name], sessions[name].even(10, 3000))
	}
	w.sync()
	w.look("", 0, "verify", "--deep")
	from := func(name string) int64 { return w.exact.digest(sessions[name].session).Generations[1].RewoundTo }
	w.exact.proc.MustStop(t)
	for name, days := range map[string]int64{"dropped": 90, "held": 90, "rewound": 40} {
		w.age(days, sessions[name].session)
	}
	w.exact.start()
	w.serverTool(0, "retention", "add", "generations", "--older-than", "30d")
	w.serverTool(0, "retention", "add", "sessions", "--older-than", "60d", "--project", "old")
	w.serverTool(0, "retention", "hold", "--session", sessions["held"].session, "--why", "a case")
	if out := w.serverTool(0, "retention"); !strings.Contains(out.stdout, "keeps 1 session: hold") {
		t.Errorf("a dry run: %+v", out)
	}
	w.serverTool(0, "retention", "--yes")
	if r := w.retired(sessions["dropped"].session); r.Retention.RetiredAt == nil || r.Retention.Lines != 60+50-from("dropped") {
		t.Errorf("of the dropped session the server says %+v", r)
	}
	if r := w.retired(sessions["rewound"].session); r.Retention.RetiredAt != nil || r.Retention.Lines != 60-from("rewound") {
		t.Errorf("of the rewound session the server says %+v", r)
	}
	w.look("drop sessions not active for 60 days in project old)", 0, "show", sessions["dropped"].session)
	w.look("kept: hold", 0, "show", sessions["held"].session)
	proven := func(when string, sent int64) {
		t.Helper()
		w.sync()
		w.look("retired by policy: 50 lines", 0, "verify")
		w.look("retired by policy: 2 generations", 0, "verify", "--deep")
		if n := w.status().Sent.Entries; n != sent {
			t.Errorf("%s: %d lines were sent, want %d", when, n, sent)
		}
		for _, name := range []string{"rewound", "held", "recent"} {
			w.same(sessions[name].session, paths[name])
		}
		w.serverTool(0, "verify")
	}
	proven("retired", w.status().Sent.Entries)
	w.d.MustStop(t)
	w.exact.proc.MustStop(t)
	w.exact.start()
	w.start()
	proven("started again", 0)
	w.look("", 0, "verify", "--repair")
	proven("repaired", 0)
	w.addAndSync(paths["dropped"], sessions["dropped"].even(3, 3000))
	proven("gone on", 3)
	w.d.MustStop(t)
	must(t, os.RemoveAll(w.state()))
	w.startAndSync()
	w.look("retired by policy: 50 lines", 0, "verify")
	w.look("retired by policy", 0, "verify", "--deep")
	w.entriesSent(0)
	w.addAndSync(paths["dropped"], sessions["dropped"].even(1, 3000))
	w.look("retired by policy: 50 lines", 0, "verify")
	code, body := w.exact.get("/api/sessions/" + sessions["dropped"].session + "/entries?limit=10")
	if n := strings.Count(string(body), `"line_index"`); code != http.StatusOK || n != 4 {
		t.Errorf("%d new lines of the dropped session, want 4: %d %.300s", n, code, body)
	}
	w.serverTool(0, "verify")
}
