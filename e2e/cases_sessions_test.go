//go:build unix

package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ccship/ccship/e2e/kit"
)

// restored is what the tests read of `restore --json`.
type restored struct {
	Session    string
	Generation int64
	Files      []struct {
		Session, Path, Aside string
		Same                 bool
	}
}

func (w *world) restore(code int, args ...string) (r restored) {
	w.t.Helper()
	out := w.ccship(append([]string{"restore", "--json"}, args...)...)
	kit.Require(w.t, out.code == code, "restore %v: exit %d, want %d\n%s%s", args, out.code, code, out.stdout, out.stderr)
	must(w.t, json.Unmarshal([]byte(out.stdout), &r))
	return r
}

// age makes a file look as if its session had been over for a while.
func age(t testing.TB, path string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, old, old))
}

// pasts writes a session's generations one after the other, and ships each.
func (w *world) pasts(path string, contents ...[]byte) {
	w.t.Helper()
	for _, content := range contents {
		must(w.t, os.WriteFile(path, content, 0o600))
		w.sync()
	}
}

// TestRestoreEveryGeneration wants each generation of rewound files back byte for byte: next to, and in place.
func TestRestoreEveryGeneration(t *testing.T) {
	w := aloneWorld(t)
	w.start()
	c := newConversation(90, w.cwd())
	odd := []byte("{\"a\":1,\"cwd\":\"" + w.cwd() + "\"}\r\n\n  {\"b\":2} \nno JSON\n\x00\x00\n{\"x\":\"\xff\"}\n{\"a\":1}{\"b\":2}\n{\"cut\":")
	kinds := map[string][][]byte{
		"plain":     {c.mixed(60), c.mixed(5), c.mixed(120)},
		"odd":       {odd, append(bytes.Clone(odd[:40]), '\n'), append(bytes.Clone(odd), []byte("1}\n")...)},
		"shrinking": {c.even(50, 3000), nil, nil},
		"large":     {c.even(40, 90_000), nil},
	}
	base := kinds["shrinking"][0]
	half := base[:bytes.IndexByte(base[len(base)/2:], '\n')+len(base)/2+1]
	kinds["shrinking"][1], kinds["shrinking"][2] = half, append([]byte("{\"type\":\"user\"}\n"), half[:bytes.IndexByte(half, '\n')+1]...)
	kinds["large"][1] = append(bytes.Clone(kinds["large"][0][:200_000]), kinds["plain"][0]...)
	for kind, contents := range kinds {
		session := newConversation(200+uint64(len(kind))+uint64(kind[0]), w.cwd()).session
		path := w.path("-work-"+kind, session+".jsonl")
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		w.pasts(path, contents...)
		agent := w.path("-work-"+kind, session, "subagents", "agent-a1.jsonl")
		w.addAndSync(agent, c.even(7, 500))
		for g, content := range contents {
			to := filepath.Join(w.dir, fmt.Sprintf("%s-%d.jsonl", kind, g))
			w.restore(0, session, "--generation", fmt.Sprint(g), "--to", to)
			w.equal(to, whole(content))
			info, err := os.Stat(to)
			kit.Check(t, err == nil && info.Mode().Perm() == 0o600, "%s: %v, %v", to, info, err)
		}
		w.restore(1, session, "--to", filepath.Join(w.dir, kind+"-0.jsonl")) // there already
		w.inPlace(session, path, agent, contents)
	}
	w.syncVerified()
}

// whole is a content without what follows its last complete line.
func whole(content []byte) []byte {
	if i := bytes.LastIndexByte(content, '\n'); !json.Valid(content[i+1:]) {
		return content[:i+1]
	}
	return content
}

// inPlace restores generation 0 over the file, and the newest one after the file and its agent's are gone.
func (w *world) inPlace(session, path, agent string, contents [][]byte) {
	w.t.Helper()
	newest, agents := w.read(path), w.read(agent)
	for _, file := range []string{path, agent} {
		now := time.Now() // which need not be the time of the disk
		must(w.t, os.Chtimes(file, now, now))
		w.restore(1, session) // written to just now
		age(w.t, file)
	}
	r := w.restore(0, session[:13], "--generation", "0")
	got := w.read(path)
	kit.Check(w.t, bytes.Equal(got, whole(contents[0])) && len(r.Files) == 2 && r.Files[1].Same, "in place: %s; %+v", firstDifference(got, contents[0]), r)
	aside := r.Files[0].Aside
	kit.Check(w.t, aside != "" && !strings.HasSuffix(aside, ".jsonl") && bytes.Equal(w.read(aside), newest), "the file of before is not at %q", aside)
	w.sync()
	must(w.t, os.Remove(path))
	must(w.t, os.RemoveAll(strings.TrimSuffix(path, ".jsonl")))
	w.restore(0, session, "--generation", fmt.Sprint(len(contents)-1))
	if got := w.read(path); !bytes.Equal(got, whole(contents[len(contents)-1])) || !bytes.Equal(w.read(agent), agents) {
		w.t.Errorf("after it was gone: %s", firstDifference(got, contents[len(contents)-1]))
	}
}

// TestRestoreRefusesLive does not touch a session that a running Claude Code has open.
func TestRestoreRefusesLive(t *testing.T) {
	w, c, path := aloneShipped(t, 95, 20)
	age(t, path)
	registry := filepath.Join(filepath.Dir(w.projects()), "sessions")
	must(t, os.MkdirAll(registry, 0o700))
	for pid, live := range map[int]bool{os.Getpid(): true, 1 << 22: false} {
		entry := filepath.Join(registry, fmt.Sprintf("%d.json", pid))
		must(t, os.WriteFile(entry, fmt.Appendf(nil, `{"pid":%d,"sessionId":%q}`, pid, c.session), 0o600))
		code := 0
		if live {
			code = 1
		}
		out := w.ccship("restore", c.session)
		kit.Check(t, out.code == code && (!live || strings.Contains(out.stderr, "is live: process")),
			"pid %d: exit %d, want %d: %s%s", pid, out.code, code, out.stdout, out.stderr)
		must(t, os.Remove(entry))
	}
	out := w.ccship("restore", c.session)
	want := "already there: " + path
	kit.Check(t, strings.HasPrefix(out.stdout, want) && strings.Contains(out.stdout, "claude --resume "+c.session+"\n"), "%q", out.stdout)
}

// TestLost names what only the prompt history knows, and what only the server has, and restores that.
func TestLost(t *testing.T) {
	w, c, path := aloneShipped(t, 96, 20)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(w.projects()), "history.jsonl"), fmt.Appendf(nil,
		"{\"display\":\"kept\",\"timestamp\":1787216400101,\"project\":\"/w\",\"sessionId\":%q}\nnoise\n"+
			"{\"display\":\"gone \\u001b[31mprompt\",\"timestamp\":1787216400101,\"project\":\"/w\",\"sessionId\":\"deadbeef-0000-4000-8000-000000000000\"}\n", c.session), 0o600))
	w.sync()
	content := w.read(path)
	must(t, os.Remove(path))
	out := w.ccship("list", "--lost")
	kit.Check(t, out.code == 0 && strings.Contains(out.stdout, "deadbeef-0000") &&
		strings.Contains(out.stdout, "gone [31mprompt") && !strings.Contains(out.stdout, "kept") &&
		strings.Contains(out.stdout, c.session),
		"lost: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	w.restore(0, c.session)
	w.equal(path, content)
	out = w.ccship("list", "--lost")
	kit.Check(t, !strings.Contains(out.stdout, c.session), "still lost: %s", out.stdout)
}

// TestListShowSearchExport drives the reading verbs against both programs, with and without a daemon and a server.
func TestListShowSearchExport(t *testing.T) {
	w, c, _ := aloneShipped(t, 97, 20)
	w.derived("cart", c.session)
	w.look(`"state":"both"`, 0, "list", "--json")
	w.look(c.session[:8], 0, "list", c.session[:8])
	w.look("no sessions", 0, "list", "nobody-said-this")
	w.look(`--project has no "nowhere"`, 2, "list", "--project", "nowhere")
	w.look(c.session, 0, "show", c.session[:8])
	w.look(c.session, 0, "search", "cart", "session:"+c.session[:8], "--json")
	w.look("nothing found", 0, "search", "zebra-crossing-nobody-wrote")
	w.look("ambiguous", 2, "show", "--json", w.second(c))
	w.look("too short", 2, "show", "abc")
	w.look("no session", 1, "show", "ffffffff")
	for _, format := range []string{"md", "html", "json", "jsonl"} {
		to := filepath.Join(w.dir, "export."+format)
		w.look("wrote "+to, 0, "export", c.session, "--format", format, "-o", to)
		w.look(" exists", 1, "export", c.session, "--format", format, "-o", to)
		eventually(t, format+": file and standard output are the same", time.Minute, func() bool {
			if w.ccship("export", c.session, "--format", format).stdout == string(w.read(to)) {
				return true
			}
			must(t, os.Remove(to)) // colours of code are left out where they take long
			w.look("wrote "+to, 0, "export", c.session, "--format", format, "-o", to)
			return false
		})
	}
	w.d.MustStop(w.t)
	w.look(`"state":"both"`, 0, "list", "--json")
	w.gate.set(unreachable)
	w.look(`"state":"local"`, 4, "list", "--json")
	w.look("cannot be reached", 4, "list", "--lost")
	w.look("cannot be reached", 4, "search", "cart")
}

// second makes a session whose id begins like another one's, and answers what they share.
func (w *world) second(c *conversation) string {
	w.t.Helper()
	w.addAndSync(w.path("-work-shop", c.session[:10]+"zzz.jsonl"), c.even(3, 200))
	return c.session[:10]
}

// TestForget removes a session from the server's database, and it does not come back.
func TestForget(t *testing.T) {
	w, c, path := aloneShipped(t, 98, 20)
	keep, kept := w.conversation(99)
	w.add(kept, keep.even(5, 300))
	w.addAndSync(w.path("-work-shop", c.session, "subagents", "agent-a1.jsonl"), c.even(4, 300))
	w.look("--yes", 2, "forget", c.session)
	w.look("stays on disk, and is not sent: "+path, 0, "forget", c.session[:10], "--yes")
	w.addAndSync(path, c.even(3, 300))
	w.d.Kill()
	must(t, os.RemoveAll(filepath.Join(w.state(), "state.db")))
	w.start()
	w.addAndSync(path, c.even(3, 300))
	for _, stream := range []string{c.session, c.session + "/agent-a1"} {
		got := w.exact.raw(stream, "")
		kit.Check(t, got == nil, "%s: the server has %d bytes", stream, len(got))
	}
	w.proven(keep.session, kept)
	w.look("on disk", 0, "show", c.session)
}

// TestDeepVerify damages what rewinds left behind in the server's database, and wants it named.
func TestDeepVerify(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]struct{ statement, words string }{
		"whole":             {"", "2 generations that rewinds ended, proven"},
		"a byte changed":    {`UPDATE lines SET raw = CAST(replace(CAST(raw AS TEXT), 'MARKED', 'marked') AS BLOB) WHERE generation = 0`, "(generation 0)"},
		"a row deleted":     {`DELETE FROM lines WHERE generation = 1 AND line = (SELECT max(line) FROM lines WHERE generation = 1)`, "(generation 1)"},
		"a generation gone": {`DELETE FROM generations WHERE generation = 1`, "the server does not have this generation"},
	} {
		t.Run(name, func(t *testing.T) {
			w := aloneWorld(t)
			w.start()
			c, path := w.conversation(100)
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			head := c.even(30, 1500)
			w.pasts(path, slices.Concat(head, c.even(10, 9000), []byte("{\"type\":\"user\",\"message\":\"MARKED\"}\n")), slices.Concat(head, c.even(20, 700)), head)
			if damage.statement != "" {
				w.exact.proc.MustStop(w.t)
				w.alter(damage.statement)
				w.exact.start()
			}
			w.look("", 0, "verify")
			out := w.ccship("verify", "--deep")
			if want := min(len(damage.statement), 1); out.code != want || !strings.Contains(out.stdout, damage.words) {
				t.Errorf("verify --deep: exit %d, want %d and %q\n%s%s", out.code, want, damage.words, out.stdout, out.stderr)
			}
		})
	}
}

// alter changes the server's database behind its back. Every line is a row of its own then.
func (w *world) alter(statement string) {
	w.t.Helper()
	db := kit.Try(sql.Open("sqlite", w.exact.database()+"?_pragma=busy_timeout(60000)&_txlock=immediate")).Must(w.t)
	defer db.Close()
	tx := kit.Try(db.Begin()).Must(w.t)
	defer func() { _ = tx.Rollback() }()
	unpack(w.t, tx)
	result := kit.Try(tx.Exec(statement)).Must(w.t)
	n, err := result.RowsAffected()
	kit.Require(w.t, err == nil && n != 0, "%s: %d rows, %v", statement, n, err)
	must(w.t, tx.Commit())
}

// TestDropsAreTold shows a rewrite that took lines out in status, with the way back.
func TestDropsAreTold(t *testing.T) {
	w, c, path := aloneShipped(t, 101, 20)
	before := w.read(path)
	must(t, os.WriteFile(path, bytes.Join(bytes.SplitAfter(before, []byte("\n"))[:12], nil), 0o600))
	w.sync()
	hint := "ccship restore " + c.session + " --generation 0 --to FILE"
	eventually(t, "status tells of the rewrite", 30*time.Second, func() bool {
		out := w.ccship("status")
		return strings.Contains(out.stdout, "took 8 lines out of session "+c.session[:8]) && strings.Contains(out.stdout, hint)
	})
	to := filepath.Join(w.dir, "before.jsonl")
	w.restore(0, c.session, "--generation", "0", "--to", to)
	w.equal(to, before)
}

const (
	shortOne  = "5a5a1111-0000-4000-8000-000000000001"
	shortTwin = "5a5a2222-0000-4000-8000-000000000002"
	shortGone = "dddddddd"
)

// TestShortIDs gives every command the beginning of an id that one session has, that two have, and that none has.
func TestShortIDs(t *testing.T) {
	w := aloneWorld(t)
	w.start()
	for _, id := range []string{shortOne, shortTwin} {
		c, path := w.talk(id)
		w.add(path, c.prompt("round the cart"))
		w.add(path, c.says(1000, "Done."))
		age(t, path)
	}
	document := filepath.Join(w.cwd(), "spec.md")
	must(t, os.WriteFile(document, []byte("spec\n"), 0o600))
	w.sync()
	w.derived("cart", shortOne, shortTwin)
	to := filepath.Join(t.TempDir(), "restored.jsonl")
	for _, command := range []string{
		"messages SESSION", "messages SESSION --clear",
		"checkpoint create SESSION", "checkpoint create --session SESSION", "checkpoint list --session SESSION",
		"checkpoint show latest --session SESSION", "checkpoint budget --session SESSION",
		"link add " + document + " --session SESSION", "link list --session SESSION", "link rm " + document + " --session SESSION",
		"show SESSION", "show --timeline SESSION", "export SESSION", "resume SESSION",
		"share SESSION", "restore SESSION --to " + to, "verify SESSION", "verify --repair SESSION", "forget SESSION --yes",
	} {
		run := func(session string) (int, string) {
			out := w.ccship(strings.Split(strings.ReplaceAll(command, "SESSION", session), " ")...)
			return out.code, out.stdout + out.stderr
		}
		if code, said := run(shortTwin[:4]); code == 0 || !strings.Contains(said, shortOne) || !strings.Contains(said, shortTwin) {
			t.Errorf("%s, for two sessions: exit %d\n%s", command, code, said)
		}
		if code, said := run(shortGone); code == 0 || !strings.Contains(said, "there is no session "+shortGone) ||
			!strings.Contains(said, "ccship list") {
			t.Errorf("%s, for no session: exit %d\n%s", command, code, said)
		}
		code, said := run(shortOne[:6])
		kit.Check(t, code == 0 && !strings.Contains(said, shortTwin), "%s, for one session: exit %d\n%s", command, code, said)
	}
	if out := w.ccship("list"); strings.Contains(out.stdout, "  server only ") || !strings.Contains(out.stdout, shortTwin[:8]) {
		t.Errorf("not one session was forgotten:\n%s%s", out.stdout, out.stderr)
	}
}

// TestShortIDsAreAllTried compares the commands above with those that the reference says take a session.
func TestShortIDsAreAllTried(t *testing.T) {
	test := kit.Try(os.ReadFile("cases_sessions_test.go")).Must(t)
	page := kit.Try(os.ReadFile(filepath.Join("..", "docs", "commands.md"))).Must(t)
	command, taking := "", []string{}
	for line := range strings.Lines(string(page)) {
		form, heading := strings.CutPrefix(strings.TrimSpace(strings.TrimLeft(line, "#")), "ccship ")
		heading = heading && strings.HasPrefix(line, "#")
		if heading {
			command = strings.TrimSpace(regexp.MustCompile(`^([a-z-]+( |$))*`).FindString(form))
		}
		flag := strings.Contains(line, "`--session id`") && command != ""
		if heading && strings.Contains(form, "SESSION") || flag {
			taking = append(taking, command)
		}
	}
	kit.Require(t, len(taking) >= 14, "the reference has %d commands that take a session: %q", len(taking), taking)
	for _, name := range taking {
		kit.Check(t, strings.Contains(string(test), `"`+name+" "), "`ccship %s` is not tried", name)
	}
}
