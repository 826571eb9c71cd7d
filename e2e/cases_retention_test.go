//go:build unix

package e2e

import (
	"database/sql"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/lines"
)

// age makes what the server has of a session older, while it is stopped.
func (w *world) age(days int64, session string) {
	w.t.Helper()
	db := kit.Try(sql.Open("sqlite", w.exact.database()+"?_pragma=busy_timeout(60000)")).Must(w.t)
	for _, query := range []string{
		`UPDATE streams SET last_received = last_received - ?1 WHERE session_id = ?2`,
		`UPDATE generations SET first_seen = first_seen - ?1
WHERE stream IN (SELECT id FROM streams WHERE session_id = ?2)`,
	} {
		kit.Try(db.Exec(query, days*24*60*60*1e6, session)).Must(w.t)
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
	kit.Require(w.t, code == http.StatusOK, "%s: %d %s", session, code, body)
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
	out := w.serverTool(0, "retention")
	kit.Check(t, strings.Contains(out.stdout, "keeps 1 session: hold"), "a dry run: %+v", out)
	w.serverTool(0, "retention", "--yes")
	r := w.retired(sessions["dropped"].session)
	kit.Check(t, r.Retention.RetiredAt != nil && r.Retention.Lines == 60+50-from("dropped"), "of the dropped session the server says %+v", r)
	r = w.retired(sessions["rewound"].session)
	kit.Check(t, r.Retention.RetiredAt == nil && r.Retention.Lines == 60-from("rewound"), "of the rewound session the server says %+v", r)
	w.look("drop sessions not active for 60 days in project old)", 0, "show", sessions["dropped"].session)
	w.look("kept: hold", 0, "show", sessions["held"].session)
	proven := func(when string, sent int64) {
		t.Helper()
		w.sync()
		w.look("retired by policy: 50 lines", 0, "verify")
		w.look("retired by policy: 2 generations", 0, "verify", "--deep")
		n := w.status().Sent.Entries
		kit.Check(t, n == sent, "%s: %d lines were sent, want %d", when, n, sent)
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
	n := strings.Count(string(body), `"line_index"`)
	kit.Check(t, code == http.StatusOK && n == 4, "%d new lines of the dropped session, want 4: %d %.300s", n, code, body)
	w.serverTool(0, "verify")
}

// coldStatus is what the tests read of `ccship-server status --json`.
type coldStatus struct {
	Cold *struct {
		Place    string
		Objects  int64
		Bytes    int64
		Pending  int64
		Left     int64   `json:"sessions_left"`
		Since    *string `json:"left_since"`
		Unpacked int64   `json:"unpacked_lines"`
		Oldest   *string `json:"oldest_unpacked"`
	}
}

// serverStatus asks the server's program about its store.
func (w *world) serverStatus() (s coldStatus) {
	w.t.Helper()
	must(w.t, json.Unmarshal([]byte(w.serverTool(0, "status", "--json").stdout), &s))
	return s
}

// TestVerifyDeepInColdStorage: the daemon's machine proves lines that left the database as it proves others, sees when
// an object of theirs is gone or has other bytes, and brings them back. The server's status says what is where.
func TestVerifyDeepInColdStorage(t *testing.T) {
	w := aloneWorld(t)
	s := w.serverStatus()
	kit.Check(t, s.Cold == nil, "a server without cold storage has %+v", s.Cold)
	place := filepath.Join(w.dir, "cold")
	w.exact.proc.MustStop(t)
	w.exact.flags = []string{"--blocks", "file://" + place, "--cold-after", "1s"}
	w.exact.start()
	c, path := shipped(w, 81, 400)
	eventually(t, "status names cold storage", time.Minute, func() bool {
		s := w.serverStatus()
		return s.Cold != nil && s.Cold.Place == "file://"+place
	})
	cold := func(sessions int64) {
		t.Helper()
		eventually(t, "lines of so many sessions are in cold storage", 5*time.Minute, func() bool {
			s := w.serverStatus().Cold
			if s == nil {
				return false
			}
			packed := s.Left == 0 && s.Since == nil || s.Unpacked > 0 && s.Oldest != nil // what is not packed stays for minutes
			return s.Objects >= sessions && s.Pending == 0 && s.Bytes > 0 && packed
		})
	}
	cold(1)
	object := ""
	must(t, filepath.WalkDir(place, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Base(filepath.Dir(path))[0] == 's' {
			object = path
		}
		return err
	}))
	past := newConversation(82, w.cwd()) // with lines that only the server still has
	rewound := w.path("-work-shop", past.session+".jsonl")
	w.addAndSync(rewound, past.even(200, 1500))
	w.keepLines(rewound, 100)
	w.addAndSync(rewound, past.even(60, 1500))
	cold(2)
	w.look("", 0, "verify", "--deep")
	w.same(c.session, path)
	w.same(past.session, rewound)
	whole := w.read(object)
	bad := append([]byte(nil), whole...)
	bad[len(bad)/2] ^= 1
	for _, damage := range map[string]func() error{
		"an object that is gone":          func() error { return os.Remove(object) },
		"an object that has another byte": func() error { return os.WriteFile(object, bad, 0o600) },
	} {
		must(t, damage())
		w.exact.proc.MustStop(t)
		w.exact.start() // with nothing of it in memory
		w.look("line", 1, "verify", "--deep")
		must(t, os.WriteFile(object, whole, 0o600))
	}
	w.exact.proc.MustStop(t)
	must(t, os.Remove(object))
	w.exact.start()
	w.look("", 0, "verify", "--deep", "--repair")
	w.look("", 0, "verify", "--deep")
	w.same(c.session, path)
}

// unpack turns the blocks of a SQLite store into rows of lines, which a statement of the same transaction can change:
// the server packs them again soon.
func unpack(t testing.TB, tx *sql.Tx) {
	t.Helper()
	packed(t, tx, func(at [4]int64, l *lines.Line) {
		_, err := tx.Exec(`INSERT INTO lines (owner, stream, epoch, generation, line, kind, raw, received) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING`, at[0], at[1], at[2], at[3], l.Index, l.Kind, append([]byte{}, l.Raw...), l.Received)
		must(t, err)
	})
	kit.Try(tx.Exec(`DELETE FROM blocks`)).Must(t)
}

// packed passes on every line in the blocks of a SQLite store, with its owner, stream, epoch and generation.
func packed(t testing.TB, tx *sql.Tx, each func(at [4]int64, l *lines.Line)) {
	t.Helper()
	codec := kit.Try(lines.NewCodec()).Must(t)
	rows := kit.Try(tx.Query(`SELECT owner, stream, epoch, generation, first, last, lines, raw_bytes, sha256, header, data FROM blocks`)).Must(t)
	defer rows.Close()
	for rows.Next() {
		var at [4]int64
		var b lines.Block
		must(t, rows.Scan(&at[0], &at[1], &at[2], &at[3], &b.First, &b.Last, &b.Lines, &b.RawBytes, &b.SHA256, &b.Header, &b.Data))
		content := kit.Try(codec.Open(&b)).Must(t)
		for i := range content.Entries {
			l := content.Line(i)
			each(at, &l)
		}
		codec.Release(content)
	}
	must(t, rows.Err())
}

// TestDamagedBlock: a byte of a packed block is flipped on the server's disk. Both verify commands name the session and
// the lines, the repair sends them again, and then everything is equal.
func TestDamagedBlock(t *testing.T) {
	w, c, path := aloneShipped(t, 2150, 400)
	other, otherPath := shipped(w, 2151, 40)
	db := kit.Try(sql.Open("sqlite", w.exact.database()+"?_pragma=busy_timeout(60000)")).Must(t)
	defer db.Close()
	result, err := db.Exec(`
UPDATE blocks SET data = CAST(substr(data, 1, 99) || X'00FF' || substr(data, 102) AS BLOB)
WHERE id = (SELECT min(b.id) FROM blocks b JOIN streams s ON s.id = b.stream WHERE s.session_id = ?)`, c.session)
	must(t, err)
	n, err := result.RowsAffected()
	kit.Require(t, err == nil && n == 1, "%d blocks damaged, %v", n, err)
	w.unequal(c.session, "not on the server", "`ccship verify --repair`")
	out := w.runProgram(kit.Program(t, "ccship-server"), "verify", "--store", w.exact.store())
	kit.Check(t, out.code != 0 && strings.Contains(out.stdout+out.stderr, c.session), "ccship-server verify: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	out = w.ccship("verify", "--repair")
	kit.Check(t, out.code == 0 && strings.HasPrefix(out.stdout, "equal"), "verify --repair: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	w.verified()
	w.same(c.session, path)
	w.same(other.session, otherPath)
}
