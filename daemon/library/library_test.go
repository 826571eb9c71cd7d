package library

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

// TestList puts disk and server side by side: each session once, the newest first, with where it is.
func TestList(t *testing.T) {
	hour := time.Hour
	r := newRoom(t,
		&stored{id: one, machine: here, at: time.Now().Add(-3 * hour)},
		&stored{id: two, machine: abroad, at: time.Now().Add(-1 * hour)},
		&stored{id: "history-x", machine: here, path: "history.jsonl", at: time.Now()})
	r.write("-p/"+one+".jsonl", promptAt("both", 2*hour), 2*hour)
	r.write("-p/"+two+".jsonl", promptAt("a copy of another machine's", 4*hour), 0)
	r.write("-p/33333333.jsonl", promptAt("fix the cart", 5*hour), 0)
	for _, name := range []string{"-p/agent-x.jsonl", "-p/.h.jsonl", "-p/a.jsonl.compact.tmp.1", "-p/b.jsonl.before-restore-1", "-p/sub/c.jsonl"} {
		r.write(name, prompt("no main transcript"), 0)
	}
	r.write("-p/empty.jsonl", "", 0)
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{Limit: 9}, "11112222/server/0b0b0b0b 11111111/both/0a0a0a0a 11112222/local/0a0a0a0a 33333333/local/0a0a0a0a"},
		{Filter{Limit: 2}, "11112222/server/0b0b0b0b 11111111/both/0a0a0a0a more"},
		{Filter{Limit: 9, Text: "cart"}, "33333333/local/0a0a0a0a"},
		{Filter{Limit: 9, Project: "/home/kim"}, "11112222/local/0a0a0a0a 33333333/local/0a0a0a0a"},
		{Filter{Limit: 9, Project: "/home/ki"}, ""},
		{Filter{Limit: 9, Machine: "host-" + abroad}, "11112222/server/0b0b0b0b"},
		{Filter{Limit: 9, Machine: "0b"}, "11112222/server/0b0b0b0b"},
		{Filter{Limit: 9, Machine: "0"}, "failed"},
		{Filter{Limit: 9, Machine: "nobody"}, "failed"},
	} {
		kit.Equal(t, fmt.Sprintf("%+v", c.f), r.list(c.f), c.want)
	}
	r.fakeServer.down = true
	got, want := r.list(Filter{Limit: 9}), "11111111/local/0a0a0a0a 11112222/local/0a0a0a0a 33333333/local/0a0a0a0a failed"
	kit.Check(t, got == want, "with the server down: %s\nwant %s", got, want)
	r.Server = nil
	kit.Equal(t, "without a server", r.list(Filter{Limit: 1}), "11111111/local/0a0a0a0a more")
}

// TestListByOneClock: the order, what is shown and --since go by the time of the newest record, whenever the file was
// restored or touched, and whether the server knows of it yet.
func TestListByOneClock(t *testing.T) {
	hour := time.Hour
	const old, long, timeless = "33333333-0000-4000-8000-000000000003", "44444444", "55555555"
	r := newRoom(t,
		&stored{id: one, machine: here, at: time.Now().Add(-9 * hour)}, // new lines are on their way
		&stored{id: two, machine: here, at: time.Now().Add(-6 * hour)})
	r.write("-p/"+one+".jsonl", promptAt("a", 9*hour)+promptAt("b", 1*hour), 0)
	r.write("-p/"+two+".jsonl", promptAt("restored", 6*hour), 0)
	r.write("-p/"+old+".jsonl", promptAt("touched", 48*hour), 0)
	r.write("-p/"+long+".jsonl", promptAt("long", 3*hour)+`{"type":"queue","text":"`+strings.Repeat("x", 100<<10)+`"}`+"\n", 0)
	r.write("-p/"+timeless+".jsonl", `{"type":"summary","summary":"no time"}`+"\n", 2*hour)
	for _, c := range []struct {
		since time.Duration
		limit int
		want  string
	}{
		{0, 9, "11111111/both 55555555/local 44444444/local 11112222/both 33333333/local"},
		{8 * hour, 9, "11111111/both 55555555/local 44444444/local 11112222/both"},
		{2*hour - time.Minute, 9, "11111111/both"},
		{0, 1, "11111111/both more"}, {8 * hour, 3, "11111111/both 55555555/local 44444444/local more"},
	} {
		f := Filter{Limit: c.limit}
		if c.since > 0 {
			f.Since = time.Now().Add(-c.since)
		}
		got := strings.ReplaceAll(r.list(f), "/"+here, "")
		kit.Check(t, got == c.want, "since %v, %d at most: %s\nwant %s", c.since, c.limit, got, c.want)
	}
	r.Server = nil
	if got, want := strings.ReplaceAll(r.list(Filter{Limit: 4, Since: time.Now().Add(-8 * hour)}), "/"+here, ""),
		"11111111/local 55555555/local 44444444/local 11112222/local"; got != want {
		t.Errorf("without a server: %s\nwant %s", got, want)
	}
}

// list is a listing in short.
func (r *room) list(f Filter) string {
	r.t.Helper()
	items, more, err := r.List(r.t.Context(), f)
	var b strings.Builder
	for _, i := range items {
		fmt.Fprintf(&b, "%.8s/%s/%s ", i.Session, i.State, i.Machine)
	}
	if more {
		b.WriteString("more")
	}
	if err != nil {
		b.WriteString("failed")
	}
	return strings.TrimSpace(b.String())
}

// TestFind takes as much of an id as tells a session from all others.
func TestFind(t *testing.T) {
	r := newRoom(t, &stored{id: one, machine: here}, &stored{id: one, machine: abroad}, &stored{id: one + "x", machine: here})
	r.write("-p/"+two+".jsonl", prompt("a"), 0)
	for prefix, want := range map[string]string{
		"11112": two, one: one, one + "x": one + "x", "1111": CodeAmbiguous, one[:20]: CodeAmbiguous, "111": control.CodeUsage, "": control.CodeUsage, "9999": control.CodeNoSession,
	} {
		f, err := r.Find(t.Context(), prefix)
		got := f.Session
		kit.Check(t, (err == nil || remote.Is(err, want)) && (err != nil || got == want), "%q: %q, %v, want %s", prefix, got, err, want)
	}
	r.fakeServer.down = true
	f, err := r.Find(t.Context(), "1111")
	kit.Check(t, err == nil && f.Session == two, "on disk, with the server down: %+v, %v", f, err)
	_, err = r.Restore(t.Context(), RestoreRequest{Session: two})
	kit.Check(t, remote.Is(err, control.CodeUnreachable), "restore with the server down: %v", err)
	_, err = r.Find(t.Context(), "9999")
	kit.Check(t, remote.Is(err, control.CodeUnreachable), "nowhere, with the server down: %v", err)
}

// TestRestoreFromElsewhere asks which machine's is meant when it cannot know.
func TestRestoreFromElsewhere(t *testing.T) {
	path := "-p/" + one + ".jsonl"
	r := newRoom(t, &stored{id: one, machine: abroad, path: path, text: "there\n"}, &stored{id: one, machine: "0c", path: path, text: "c [github:ow53kz6kmzbpdnif......]\n"})
	if _, err := r.Restore(t.Context(), RestoreRequest{Session: one}); !remote.Is(err, CodeAmbiguous) {
		t.Errorf("two machines: %v", err)
	}
	if _, err := r.Restore(t.Context(), RestoreRequest{Session: one, Machine: here}); !remote.Is(err, control.CodeNoSession) {
		t.Errorf("a machine that has it not: %v", err)
	}
	done, err := r.Restore(t.Context(), RestoreRequest{Session: one, Machine: "0c"})
	kit.Require(t, err == nil && len(done.Files) == 1 && !done.CwdThere && done.Files[0].Masked == 1, "%+v, %v", done, err)
	text, err := os.ReadFile(filepath.Join(r.Roots[0], path))
	kit.Check(t, strings.HasPrefix(string(text), "c [github") && err == nil, "%q, %v", text, err)
	if info, err := os.Stat(filepath.Join(r.Roots[0], path)); err != nil || time.Since(info.ModTime()) < quiet {
		t.Errorf("it looks as if it was being written: %v, %v", info.ModTime(), err)
	}
}

// TestRestoreTrustsNobody writes nothing when the bytes have another digest, or the server names a place outside.
func TestRestoreTrustsNobody(t *testing.T) {
	x := &stored{id: one, machine: here, text: "a\nb\n", path: "-p/" + one + ".jsonl", sum: strings.Repeat("00", 32)}
	r := newRoom(t, x)
	_, err := r.Restore(t.Context(), RestoreRequest{Session: one})
	kit.Check(t, err != nil && strings.Contains(err.Error(), "does not match its digest"), "a wrong digest: %v", err)
	x.sum = ""
	for _, path := range []string{
		"../" + one + ".jsonl", "/etc/x.jsonl", "-p/../../x.jsonl", "-p/x.json", "x.jsonl", "", "-p/.x.jsonl", ".ssh/x.jsonl", `-p\x.jsonl`, "-p/\x00.jsonl", "-p//x.jsonl/..",
		"-p/" + two + ".jsonl", "-other/" + two + ".jsonl", "-p/" + one + "/subagents/agent-x.jsonl",
	} {
		x.path = path
		_, err := r.Restore(t.Context(), RestoreRequest{Session: one})
		kit.Check(t, err != nil && strings.Contains(err.Error(), "not a valid place"), "%q: %v", path, err)
	}
	x.path = "-p/" + one + ".jsonl"
	mine := r.write("-p/"+two+".jsonl", "mine\n", time.Hour)
	agent := &stored{id: one + "/agent-a", machine: here, parent: one, text: "agent\n"}
	r.fakeServer.sessions = append(r.fakeServer.sessions, agent)
	for _, path := range []string{"-p/" + two + ".jsonl", "-p/" + two + "/subagents/agent-a.jsonl", "-p/" + one + "/subagents/agent-b.jsonl",
		"-p/" + one + "/" + two + ".jsonl", "../-p/" + one + "/subagents/agent-a.jsonl"} {
		agent.path = path
		_, err := r.Restore(t.Context(), RestoreRequest{Session: one})
		kit.Check(t, err != nil && strings.Contains(err.Error(), "not a valid place"), "an agent's %q: %v", path, err)
	}
	if text, err := os.ReadFile(mine); string(text) != "mine\n" || err != nil || len(r.files()) != 2 {
		t.Errorf("another session's transcript: %q, %v; files: %v", text, err, r.files())
	}
}

// TestOwnNames takes the names that files have on disk, also those that look like a copy's or are escaped on the wire.
func TestOwnNames(t *testing.T) {
	for _, x := range []remote.Session{
		{SessionID: one, Path: "-p/" + one + ".jsonl"},
		{SessionID: one + "~2", Path: "-p/" + one + ".jsonl"},
		{SessionID: "notes~1", Path: "-p/notes~1.jsonl"},
		{SessionID: "notes~1~2", Path: "-q/notes~1.jsonl"},
		{SessionID: "notes~1/agent-a", Parent: "notes~1", Path: "-p/notes~1/subagents/agent-a.jsonl"},
		{SessionID: "50%25", Path: "-p/50%.jsonl"},
		{SessionID: "50%25", Path: "-p/50%25.jsonl"},
		{SessionID: "50%25/agent-a", Parent: "50%25", Path: "-p/50%/subagents/agent-a.jsonl"},
	} {
		_, err := below(t.TempDir(), &x)
		kit.Check(t, err == nil, "%s at %s: %v", x.SessionID, x.Path, err)
	}
}

// TestRestoreBesideAnother moves a different file aside, keeps an equal one, and never replaces a named one by itself.
func TestRestoreBesideAnother(t *testing.T) {
	path := "-p/" + one + ".jsonl"
	r := newRoom(t, &stored{id: one, machine: here, path: path, text: "a\nb\n"},
		&stored{id: one + "/agent-a", machine: here, parent: one, path: "-elsewhere/" + one + "/subagents/agent-a.jsonl", text: "agent\n"})
	at := r.write(path, "other\n", time.Hour)
	done, err := r.Restore(t.Context(), RestoreRequest{Session: one})
	kit.Require(t, err == nil && len(done.Files) == 2, "%+v, %v", done, err)
	agent := filepath.Join(r.Roots[0], "-p", one, "subagents", "agent-a.jsonl") // in the folder of its session here
	for file, want := range map[string]string{at: "a\nb\n", done.Files[0].Aside: "other\n", agent: "agent\n"} {
		text, err := os.ReadFile(file)
		kit.Check(t, string(text) == want && err == nil, "%s: %q, %v", file, text, err)
	}
	if len(Disk(r.Roots)) != 1 {
		t.Errorf("the file of before passes for a transcript: %v", Disk(r.Roots))
	}
	r.write(path, "a\nb\n", time.Hour)
	if done, err = r.Restore(t.Context(), RestoreRequest{Session: one, NoAgents: true}); err != nil || !done.Files[0].Same || done.Files[0].Aside != "" || len(done.Files) != 1 {
		t.Errorf("an equal file: %+v, %v", done, err)
	}
	named := r.write("../named", "mine\n", time.Hour)
	_, err = r.Restore(t.Context(), RestoreRequest{Session: one, To: named})
	kit.Check(t, remote.Is(err, CodeFileExists), "a named file: %v", err)
	text, _ := os.ReadFile(named)
	kit.Check(t, string(text) == "mine\n", "a named file became %q", text)
	_, err = r.Restore(t.Context(), RestoreRequest{Session: one, To: named, Force: true})
	kit.Check(t, err == nil, "%v", err)
	text, _ = os.ReadFile(named)
	kit.Check(t, string(text) == "a\nb\n", "with force a named file is %q", text)
	got := slices.DeleteFunc(r.files(), func(s string) bool { return !strings.Contains(s, "restore-") })
	kit.Check(t, len(got) == 1, "left behind: %v", got)
}

// TestLive refuses while the file was written just now or a living process is listed; not for one that ended.
func TestLive(t *testing.T) {
	path := "-p/" + one + ".jsonl"
	r := newRoom(t, &stored{id: one, machine: here, path: path, text: "a\n"})
	for age, live := range map[time.Duration]bool{time.Second: true, -time.Second: true, 3 * time.Minute: false, -time.Hour: false} {
		r.write(path, "b\n", age)
		_, err := r.Restore(t.Context(), RestoreRequest{Session: one})
		kit.Check(t, remote.Is(err, CodeLive) == live && (live || err == nil), "written %s ago: %v", age, err)
	}
	r.write("../sessions/x.json", "{", 0)
	r.write("../sessions/999999999.json", `{"sessionId":"`+one+`"}`, 0)
	r.write(fmt.Sprintf("../sessions/%d.json", os.Getpid()), `{"sessionId":"`+two+`"}`, 0)
	r.write(path, "b\n", time.Hour)
	_, err := r.Restore(t.Context(), RestoreRequest{Session: one})
	kit.Check(t, err == nil, "others run: %v", err)
	r.write(fmt.Sprintf("../sessions/%d.json", os.Getpid()), `{"sessionId":"`+one+`"}`, 0)
	r.write(path, "b\n", time.Hour)
	_, err = r.Restore(t.Context(), RestoreRequest{Session: one})
	kit.Check(t, remote.Is(err, CodeLive), "it runs: %v", err)
	_, err = r.Restore(t.Context(), RestoreRequest{Session: one, Force: true})
	kit.Check(t, err == nil, "with force: %v", err)
}

// TestLost reads a prompt history with all that can be in it.
func TestLost(t *testing.T) {
	r := newRoom(t, &stored{id: one, machine: here, path: "-p/" + one + ".jsonl"}, &stored{id: two, machine: abroad})
	r.write("-p/33333333.jsonl", prompt("a"), 0)
	line := func(session string, ms int64, text string) string {
		return fmt.Sprintf(`{"display":%q,"timestamp":%d,"project":"/p","sessionId":%q}`+"\n", text, 1787216400000+ms, session)
	}
	history := line(one, 1, "a") + line(two, 2, "b") + line("33333333", 3, "c") + "noise\n{}\n\n" + `{"sessionId":7}` + "\n" +
		line("gone", 5000, "second") + line("gone", 1000, "first") +
		`{"display":"at no time","sessionId":"gone"}` + "\n" + line("older", 1, strings.Repeat("é", keptText)) + `{"display":"cut`
	for range keptPrompts + 1 {
		history = line("gone", 3000, "again") + history
	}
	r.write("../history.jsonl", history, 0)
	lost, err := r.Lost(t.Context())
	kit.Require(t, err == nil && len(lost.Gone) == 2 && len(lost.Restorable) == 1 && lost.Restorable[0].Session == one,
		"%+v, %v", lost, err)
	g := lost.Gone[0]
	kit.Check(t, g.Session == "gone" && g.Count == keptPrompts+4 && len(g.Prompts) == keptPrompts && g.First.UnixMilli() == 1787216401000 && g.Last.UnixMilli() == 1787216405000,
		"%+v", g)
	if text := lost.Gone[1].Prompts[0].Text; len(text) > keptText+3 || strings.ContainsRune(text, '\ufffd') {
		t.Errorf("a long prompt became %d bytes", len(text))
	}
	r.fakeServer.down = true
	_, err = r.Lost(t.Context())
	kit.Check(t, remote.Is(err, control.CodeUnreachable), "what the server has is not known: %v", err)
}

// TestWriteFile leaves nothing behind when it fails.
func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.md")
	fail := func(io.Writer) error { return os.ErrDeadlineExceeded }
	if _, err := WriteFile(path, false, fail); err == nil || !notThere(path) {
		t.Errorf("%v, there %v", err, !notThere(path))
	}
	text := func(w io.Writer) error { _, err := io.WriteString(w, "text"); return err }
	kit.Gives(t, "WriteFile", int64(4))(WriteFile(path, false, text))
	_, err := WriteFile(path, false, text)
	kit.Check(t, remote.Is(err, CodeFileExists), "there already: %v", err)
	_, err = WriteFile(path, true, fail)
	kit.Check(t, err != nil, "no error")
	entries, _ := os.ReadDir(filepath.Dir(path))
	got, _ := os.ReadFile(path)
	kit.Check(t, string(got) == "text" && len(entries) == 1, "%q, %v", got, entries)
}

// A session that lies here in several files, or came from another machine, is on disk, once, and not lost.
func TestCopiesOnDisk(t *testing.T) {
	r := newRoom(t, &stored{id: one, machine: abroad, copies: [][2]string{{one, here}, {one + "~2", here}, {one + " 2", here}}},
		&stored{id: two, machine: here}, &stored{id: two + "~2", machine: here})
	for _, name := range []string{"-p/" + one, "-q/" + one, "-p/" + one + " 2", "-p/" + two, "-q/" + two} {
		r.write(name+".jsonl", prompt("a"), 0)
	}
	items, _, err := r.List(t.Context(), Filter{Limit: 9})
	kit.Require(t, err == nil && len(items) == 3, "%+v, %v", items, err)
	for _, i := range items {
		kit.Check(t, i.State == OnBoth && i.Path != "", "%+v", i)
	}
	lost, err := r.Lost(t.Context())
	kit.Check(t, err == nil && len(lost.Restorable)+len(lost.Gone) == 0, "%+v, %v", lost, err)
}

// TestCopyOfUser: of two users' sessions with one id and machine none is chosen, until the user is named.
func TestCopyOfUser(t *testing.T) {
	r := newRoom(t)
	session := func(user, machine string) *remote.Session {
		return &remote.Session{SessionID: one, User: user, Machine: machine, Host: "h"}
	}
	both := Found{Session: one, Stored: []*remote.Session{session("bob", here), session("ann", here), session("eve", abroad)}}
	for name, c := range map[string]struct {
		which      Copy
		user, code string
	}{
		"nobody named":        {Copy{}, "", control.CodeAmbiguous},
		"machine named":       {Copy{Machine: here}, "", control.CodeAmbiguous},
		"ann":                 {Copy{User: "ann"}, "ann", ""},
		"bob, machine":        {Copy{User: "bob", Machine: here}, "bob", ""},
		"eve, elsewhere only": {Copy{User: "eve"}, "eve", ""},
		"eve, not here":       {Copy{User: "eve", Machine: here}, "", control.CodeNoSession},
		"somebody else":       {Copy{User: "kim"}, "", control.CodeNoSession},
	} {
		got, err := r.stored(t.Context(), both, c.which)
		if c.code != "" {
			kit.Check(t, remote.Is(err, c.code), "%s: %+v, %v, want %s", name, got, err, c.code)
			continue
		}
		kit.Check(t, err == nil && got.User == c.user, "%s: %+v, %v, want that of %s", name, got, err, c.user)
	}
}

// TestWorstLinesOnDisk: one line of 30 MB, whatever is in it, takes what a session and its timeline show from disk no
// more memory than a few copies of it, and no more than a screen of output.
func TestWorstLinesOnDisk(t *testing.T) {
	const size = 30 << 20
	record := func(kind, content string) string {
		return `{"type":"` + kind + `","uuid":"u","sessionId":"s","cwd":"/work/shop","timestamp":"2026-11-20T09:00:00Z","message":{"role":"` +
			kind + `","id":"m","model":"claude-opus-5","content":` + content + "}}\n"
	}
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	list := func(part string) string { return "[" + strings.TrimSuffix(fill(part+","), ",") + "]" }
	deep := strings.Repeat("[", 9900) + strings.Repeat("]", 9900)
	for name, line := range map[string]string{
		"markup":    record("assistant", `[{"type":"text","text":"`+fill(`# a\n- b *c*\n`)+`"}]`),
		"blocks":    record("assistant", list(`{"type":"text","text":"x"}`)),
		"nested":    record("assistant", `[{"type":"tool_use","id":"t","name":"Bash","input":{"x":`+list(deep)+`}}]`),
		"calls":     record("assistant", list(`{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"a.go"}}`)),
		"results":   record("user", list(`{"type":"tool_result","tool_use_id":"t","content":"\u001b[31mx"}`)),
		"sequences": record("user", `"`+fill(`\u001b[31ma\u001b[0m `)+`"`),
	} {
		t.Run(name, func(t *testing.T) {
			text := record("user", `"hello"`) + line + record("user", `"bye"`)
			l := &Library{Roots: []string{put(t, map[string]string{usageOne: text})}}
			id := strings.TrimSuffix(usageOne[strings.LastIndex(usageOne, "/")+1:], ".jsonl")
			show := func() (any, error) { return l.Show(t.Context(), id, View{Messages: 200}) }
			timeline := func() (any, error) { return l.Timeline(t.Context(), id, Copy{}, nil, nil) }
			for what, read := range map[string]func() (any, error){"session": show, "timeline": timeline} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got, err := read()
				runtime.ReadMemStats(&after)
				kit.Require(t, err == nil, "%s: %v", what, err)
				out, err := json.Marshal(got)
				took := after.TotalAlloc - before.TotalAlloc
				kit.Check(t, err == nil && took <= 8*size && len(out) <= 1<<20, "%s: %d MiB allocated, %d bytes shown (%v)", what, took>>20, len(out), err)
			}
		})
	}
}
