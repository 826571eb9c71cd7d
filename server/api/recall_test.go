package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server"
)

// work is a session in which a test fails, is fixed and passes, one record a line, a minute after another.
func work(id string, day int) piece {
	tool := func(name, tool, input string) string {
		return fmt.Sprintf(`"type":"assistant","message":{"id":"m-%s-%s","role":"assistant","model":"claude-x","content":[`+
			`{"type":"tool_use","id":"%s-%s","name":%q,"input":%s}]}`, id, name, id, name, tool, input)
	}
	result := func(name, text string, failed bool) string {
		return fmt.Sprintf(`"type":"user","message":{"role":"user","content":[`+
			`{"type":"tool_result","tool_use_id":"%s-%s","content":%q,"is_error":%t}]}`, id, name, text, failed)
	}
	records := []string{
		`"type":"user","message":{"role":"user","content":"make the tests pass"}`,
		tool("a", "Bash", `{"command":"go test ./cart"}`),
		result("a", "Exit code 1\ncart.go:3: undefined: total", true),
		tool("b", "Read", `{"file_path":"/home/kim/shop/cart.go"}`),
		result("b", "package cart", false),
		tool("c", "Edit", `{"file_path":"/home/kim/shop/cart.go","old_string":"a","new_string":"b"}`),
		result("c", "ok", false),
		tool("d", "Bash", `{"command":"go test ./cart"}`),
		result("d", "Exit code 1\ncart.go:3: undefined: total", true),
		tool("e", "Edit", `{"file_path":"/home/kim/shop/cart.go","old_string":"b","new_string":"total"}`),
		result("e", "ok", false),
		tool("f", "Bash", `{"command":"go test ./cart"}`),
		result("f", "ok cart 0.1s", false),
		tool("g", "Bash", `{"command":"git commit -m total"}`),
		result("g", "done", false),
		`"type":"user","message":{"role":"user","content":"now the docs"}`,
		tool("h", "Write", `{"file_path":"/home/kim/shop/docs/mycart.go","content":"x"}`),
		result("h", "ok", false),
	}
	p := piece{}
	for i, r := range records {
		parent := "null"
		if i > 0 {
			parent = fmt.Sprintf(`"%s-u%d"`, id, i-1)
		}
		p.lines = append(p.lines, fmt.Sprintf(
			`{"uuid":"%s-u%d","parentUuid":%s,"sessionId":%q,"timestamp":"2026-11-%02dT09:%02d:00.000Z","permissionMode":"default",%s}`,
			id, i, parent, id, day, i, r))
	}
	return p
}

// TestTimeline: pages of a timeline join to the whole, kinds narrow it, and nobody else sees it.
func TestTimeline(t *testing.T) {
	r := newRig(t)
	r.post(work("s", 2).body("s"))
	r.waitDerived()
	type page struct {
		Moments []struct {
			Line     int64 `json:"line_index"`
			Kind     string
			Text     string
			Duration int64 `json:"duration_ms"`
			MayWait  bool  `json:"may_include_waiting"`
			URL      string
		}
		Read int64 `json:"lines_read"`
		Next *string
	}
	read := func(query string) (all []string) {
		for after := ""; ; {
			var p page
			r.getJSON("/api/sessions/s/timeline?limit=2"+query+after, &p)
			kit.Equal(t, "lines are read", p.Read, 18)
			for _, m := range p.Moments {
				all = append(all, fmt.Sprintf("%d %s %s %ds %t", m.Line, m.Kind, m.Text, m.Duration/1000, m.MayWait))
				kit.Has(t, fmt.Sprintf("the address of line %d is", m.Line), m.URL, fmt.Sprintf("/sessions/s/L/%d?", m.Line))
			}
			if p.Next == nil {
				return all
			}
			after = "&after=" + url.QueryEscape(*p.Next)
		}
	}
	want := []string{
		"0 prompt make the tests pass 840s true", "2 error Exit code 1 cart.go:3: undefined: total 60s true", "4 tool /home/kim/shop/cart.go 60s true",
		"6 tool /home/kim/shop/cart.go 60s true", "8 error Exit code 1 cart.go:3: undefined: total 60s true", "10 tool /home/kim/shop/cart.go 60s true",
		"12 tool go test ./cart 60s true", "14 tool git commit -m total 60s true", "15 prompt now the docs 0s false", "17 tool /home/kim/shop/docs/mycart.go 60s true",
	}
	got := read("")
	kit.Check(t, slices.Equal(got, want), "got\n%s", strings.Join(got, "\n"))
	kit.Equal(t, "prompts are", read("&kind=prompt,checkpoint"), []string{want[0], want[8]})
	for path, status := range map[string]int{"s/timeline?kind=x": 400, "s/timeline?after=x": 400, "other/timeline": 404} {
		r.send("GET", "/api/sessions/"+path, "", status)
	}
}

// TestExport: jsonl is the lines, json the entries, and no session's name breaks the header.
func TestExport(t *testing.T) {
	r := newRig(t)
	const name = `a"b/ü;x`
	r.post(encode(t, name, "{\"a\":1}\n\n not json\n"))
	path := "/api/sessions/a%22b%2F%C3%BC;x/export"
	a := r.get(path)
	kit.Check(t, string(a.body) == "{\"a\":1}\n\n not json\n" &&
		a.header.Get("Content-Disposition") == `attachment; filename="a_b___x.jsonl"`, "%q %v", a.body, a.header)
	doc := decode[struct {
		Entries []struct{ Kind string }
	}](t, r.get(path+"?format=json"))
	kit.Check(t, len(doc.Entries) == 3 && doc.Entries[0].Kind == "object" && doc.Entries[2].Kind == "opaque", "%+v", doc)
	for format, want := range map[string]int{"md": 404, "html": 404, "exe": 400} {
		r.send("GET", path+"?format="+format, "", want)
	}
}

// here asks for the proof that the server is on this machine, as a client of this user does, and as another one.
func (r *rig) here() {
	r.t.Helper()
	dir := kit.Try(sys.UserFolder()).Must(r.t)
	id := strings.Repeat("0", 32)
	path := filepath.Join(dir, "ccship-here-"+id)
	kit.Must(r.t, os.WriteFile(path, make([]byte, 32), 0o600))
	defer os.Remove(path)
	for id, status := range map[string]int{id: 200, strings.Repeat("1", 32): 404} {
		r.send("GET", "/here?id="+id, "", status)
	}
}

// shadowed is a server on which bob sent, after ann, what has the names of ann's: session, machine, agent, document,
// checkpoint.
func shadowed(t *testing.T) (owner, ann, bob *rig) {
	t.Helper()
	owner = newRig(t)
	ann, bob = owner.person("ann", server.Member), owner.person("bob", server.Member)
	for _, r := range []struct {
		*rig
		name string
	}{{ann, "ann"}, {bob, "bob"}} {
		line := func(n string) string {
			return `{"type":"user","uuid":"` + r.name + n + `","timestamp":"2026-11-21T08:00:0` + n +
				`Z","message":{"role":"user","content":"written by ` + r.name + `, a wombat"}}`
		}
		r.post(piece{lines: []string{line("0"), line("1")}}.body("s"))
		agent := piece{lines: []string{line("2")}}.body("s/agent-1")
		r.post(strings.Replace(agent, `"parent_session_id":null`, `"parent_session_id":"s"`, 1))
		r.post(piece{gen: 1, first: 0, lines: []string{line("3")}}.body("s")) // a rewrite that drops a line
		r.putDocument("s", linked("plan.md", 1, "plan of "+r.name))
		r.send("POST", "/api/checkpoints", artifact("s", `"checkpoints":[`+
			strings.Replace(aCheckpoint, "half", "half of "+r.name, 1)+`]`), 200)
		r.sendBlob("s", "tool-results/t.txt", "result of "+r.name)
	}
	owner.waitDerived()
	return owner, ann, bob
}

// sessionReads are all calls that name one session.
var sessionReads = []string{
	"/api/sessions/s", "/api/sessions/s/entries", "/api/sessions/s/raw", "/api/sessions/s/digest",
	"/api/sessions/s/digest?epochs=all", "/api/sessions/s/digest?from=0", "/api/sessions/s/export",
	"/api/sessions/s/export?format=json", "/api/sessions/s/checkpoints", "/api/sessions/s/documents",
	"/api/sessions/s/documents/plan.md", "/api/sessions/s/documents/plan.md/versions", "/api/sessions/s/blobs",
	"/api/sessions/s/link-requests", "/api/checkpoints/cp-1", "/api/checkpoints?session=s",
	"/api/usage?by=user&session=s", "/api/drops?session=s", "/api/sessions?parent=s",
}

func withQuery(path, q string) string {
	if strings.Contains(path, "?") {
		return path + "&" + q
	}
	return path + "?" + q
}

// TestShadowing: bob cannot put his session in place of ann's by giving it the same names. A reader who sees both has
// to say whose is meant.
func TestShadowing(t *testing.T) {
	owner, ann, bob := shadowed(t)
	for _, path := range sessionReads {
		for _, q := range []string{"", "machine=m1"} {
			p := path
			if q != "" && !strings.Contains(path, "/checkpoints") {
				p = withQuery(path, q)
			}
			a := owner.get(p)
			for _, want := range []string{`"code":"ambiguous"`, `"user":"ann"`, `"user":"bob"`, `"choices"`} {
				kit.Check(t, a.status == http.StatusConflict && strings.Contains(string(a.body), want),
					"%s: %d %s, want 409 with %s", p, a.status, a.body, want)
			}
		}
		for name, r := range map[string]*rig{"ann": ann, "bob": bob} {
			own, named, me := r.get(path), owner.get(withQuery(path, "user="+name)), r.get(withQuery(path, "user=@me"))
			kit.Check(t, own.status == 200 && string(own.body) == string(named.body) && string(own.body) == string(me.body),
				"%s of %s: own %d %s\nnamed %d %s\n@me %d %s", path, name, own.status, own.body, named.status, named.body, me.status, me.body)
			other := map[string]string{"ann": "bob", "bob": "ann"}[name]
			kit.Check(t, !strings.Contains(string(own.body), " "+other) && !strings.Contains(string(own.body), `"`+other+`"`),
				"%s of %s has something of %s: %s", path, name, other, own.body)
			a := r.get(withQuery(path, "user="+other))
			kit.Check(t, !strings.Contains(string(a.body), other) || a.status != 200, "%s shows %s what is %s's: %s", path,
				name, other, a.body)
		}
	}
}

// TestShadowedChanges: a forget, a link request and digests by a list mean one user's session.
func TestShadowedChanges(t *testing.T) {
	owner, ann, bob := shadowed(t)
	a := owner.send("POST", "/api/digests", `{"sessions":[{"session_id":"s","machine":"m1"},{"session_id":"s","user":"ann"},`+
		`{"session_id":"s","user":"@me"}]}`, 200)
	n := strings.Count(string(a.body), `"ambiguous"`)
	kit.Check(t, n == 1 && strings.Count(string(a.body), `"not_found"`) == 1, "digests: %s", a.body)
	owner.send("POST", "/api/sessions/s/documents", `{"path":"x.md"}`, http.StatusConflict)
	owner.send("POST", "/api/sessions/s/documents?user=ann", `{"path":"x.md"}`, http.StatusAccepted)
	for name, want := range map[string]int{"ann": 1, "bob": 0} {
		a := owner.get("/api/sessions/s/link-requests?user=" + name)
		kit.Equal(t, fmt.Sprintf("link requests of %s: %s", name, a.body), strings.Count(string(a.body), `"path"`), want)
	}
	owner.send("DELETE", "/api/sessions/s", "", http.StatusConflict)
	owner.send("DELETE", "/api/sessions/s?user=nobody", "", http.StatusNotFound)
	owner.send("DELETE", "/api/sessions/s?user=@me", "", http.StatusNotFound)
	bob.send("DELETE", "/api/sessions/s?user=ann", "", http.StatusNotFound)
	gone := owner.send("DELETE", "/api/sessions/s?user="+url.QueryEscape("bob"), "", 200)
	kit.Has(t, "forgotten", string(gone.body), `"user":"bob"`)
	kit.Equal(t, "ann has", ann.sessionsOf(""), "ann:s ann:s/agent-1")
	kit.Equal(t, "bob has", bob.sessionsOf(""), "")
	kit.Has(t, "the only one left", owner.raw("s", ""), "by ann")
	bob.post(piece{lines: objects("a", 0, 1)}.body("t")) // others of his are stored
	owner.send("DELETE", "/api/sessions/s", "", 200)     // there is only one
}

// TestSharedShadow: of two who share a project with eve, neither replaces the other's session.
func TestSharedShadow(t *testing.T) {
	_, ann, bob := shadowed(t)
	eve := ann.person("eve", server.Viewer)
	for _, r := range []*rig{ann, bob} {
		r.send("POST", "/api/shares", `{"with":"eve","project":"ph","documents":true}`, http.StatusCreated)
	}
	for _, path := range sessionReads {
		eve.send("GET", path, "", http.StatusConflict)
	}
	ann.send("DELETE", "/api/shares", `{"with":"eve","project":"ph"}`, 200)
	kit.Has(t, "what only bob shares", eve.raw("s", ""), "by bob")
}
