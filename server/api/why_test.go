package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// written is a session that a person asks to write a text to a file.
func written(id, at, file, text string) piece {
	input, _ := json.Marshal(map[string]string{"file_path": file, "content": text})
	record := func(n int, rest string) string {
		return fmt.Sprintf(`{"uuid":"%s-%d","sessionId":%q,"timestamp":"2026-03-12T%s:%02dZ","cwd":"/home/kim/shop",%s}`, id, n, id, at, n, rest)
	}
	return piece{lines: []string{
		record(0, `"type":"user","message":{"role":"user","content":"write `+id+`"}`),
		record(1, `"type":"assistant","message":{"id":"m-`+id+`","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t-`+id+`","name":"Write","input":`+string(input)+`}]}`),
		record(2, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t-`+id+`","content":"ok"}]}`),
	}}
}

// asking is a question about a commit that adds lines to a file.
func asking(t *testing.T, path string, lines ...string) string {
	t.Helper()
	f := provenance.File{Paths: []string{path}}
	for i, l := range lines {
		sum, plain, _ := provenance.SumOf(l)
		f.Lines = append(f.Lines, provenance.Added{Number: i + 1, Sum: sum, Plain: plain})
	}
	b := kit.Try(json.Marshal(map[string]any{"commits": []provenance.Commit{{Name: "c0ffee", Project: "ph",
		At: time.Date(2026, 3, 12, 20, 0, 0, 0, time.UTC), Files: []provenance.File{f}}}})).Must(t)
	return string(b)
}

// TestWhy names sessions and prompts, and says nothing of a session that they may not read: what bob gets is what he
// gets without that session, byte for byte.
func TestWhy(t *testing.T) {
	owner := newRig(t)
	ann, bob := owner.person("ann", server.Member), owner.person("bob", server.Member)
	const first, second = "func total(c Cart) int {", "	return sumOfPrices(c)"
	bob.post(written("bobs", "10:00", "/home/bob/shop/cart.go", first+"\n"+second+"\n").body("bobs"))
	owner.waitDerived()
	question := asking(t, "shop/cart.go", first, second, "}", "var byHand = \"a line of Kim's\"")
	ask := func(r *rig, query string) string {
		t.Helper()
		return string(r.send("POST", "/api/why"+query, question, 200).body)
	}
	without := ask(bob, "?lines=1")
	ann.post(written("anns", "11:00", "/home/ann/shop/cart.go", first+"\n"+second+"\n}\n").body("anns"))
	owner.waitDerived()
	kit.Equal(t, "bob learns of ann's session", ask(bob, "?lines=1"), without)
	short := func(text string) string {
		t.Helper()
		var a struct{ Commits []provenance.Answer }
		err := json.Unmarshal([]byte(text), &a)
		kit.Require(t, err == nil && len(a.Commits) == 1, "%v: %s", err, text)
		out := fmt.Sprint(a.Commits[0].Added)
		for _, s := range a.Commits[0].Sessions {
			out += fmt.Sprintf(" %s %s own %t %d by path %t:", s.SessionID, s.User, s.Own, s.Lines, s.ByPath)
			for _, p := range s.Prompts {
				out += fmt.Sprintf(" %d %q %d %t", p.Line, p.Text, p.Lines, strings.Contains(p.URL, "/sessions/"+s.SessionID+"/L/0?"))
			}
		}
		return out + fmt.Sprint(" ", a.Commits[0].NotProven)
	}
	for r, want := range map[*rig]string{
		bob:   `4 bobs bob own true 2 by path false: 0 "write bobs" 2 true map[by_hand:2]`,
		ann:   `4 anns ann own true 3 by path false: 0 "write anns" 3 true map[by_hand:1]`,
		owner: `4 anns ann own false 3 by path false: 0 "write anns" 3 true map[by_hand:1]`,
	} {
		got := short(ask(r, ""))
		kit.Check(t, got == want, "%s, want %s", got, want)
	}
	ann.send("POST", "/api/shares", `{"with":"bob","project":"ph"}`, 201)
	kit.Has(t, "shared", short(ask(bob, "")), "anns ann own false 3")
	kit.Has(t, "with GET", short(string(bob.send("GET", "/api/why?q="+url.QueryEscape(question), "", 200).body)),
		"anns ann own false 3")
	ann.send("DELETE", "/api/sessions/anns", "", 200)
	kit.Equal(t, "after it was forgotten", ask(bob, "?lines=1"), without)
	bob.send("GET", "/api/why?q=x", "", 400)
	for _, many := range []string{strings.Repeat("{},", 501), strings.Repeat("{},", 2_000_000), strings.Repeat("null,", 1_000_000),
		`{"commit":"x","at":"2026-03-12T20:00:00Z","files":[{"paths":[` + strings.Repeat(`"a",`, 16) + `"a"],"lines":[]}]},`} {
		bob.send("POST", "/api/why", `{"commits":[`+strings.TrimSuffix(many, ",")+`]}`, 400)
	}
	bob.send("POST", "/api/why", `{"commits":[{"commit":"x","at":"2026-03-12T20:00:00Z","files":[{"paths":[],"lines":[]}]}]}`, 400)
}

// TestWhyShortLines names a session for lines that say little when its edit added just these, not when it added more.
func TestWhyShortLines(t *testing.T) {
	r := newRig(t)
	r.post(written("s", "10:00", "/home/kim/shop/run.sh", "open\nsell\n").body("s"))
	r.post(written("more", "10:00", "/home/kim/shop/stop.sh", "open\nsell\necho the shop is closed now\n").body("more"))
	r.waitDerived()
	for file, want := range map[string]string{"run.sh": `"lines":2`, "stop.sh": `"by_hand":2`} {
		kit.Has(t, file+": lacks", string(r.send("POST", "/api/why", asking(t, file, "open", "sell"), 200).body), want)
	}
}

// TestWhyClone knows a session in another clone of the commit's repository for one of it, as far as the reader sees both.
func TestWhyClone(t *testing.T) {
	owner := newRig(t)
	ann, bob := owner.person("ann", server.Member), owner.person("bob", server.Member)
	const line = "func total(c Cart) int {"
	in := func(session, hash string) string {
		text := strings.Replace(written(session, "10:00", "/srv/"+hash+"/cart.go", line+"\n").body(session), `"project_hash":"ph"`, `"project_hash":"`+hash+`"`, 1)
		return strings.Replace(text, `"project":"w"`, `"project":"w","repository":"r"`, 1)
	}
	ann.post(in("here", "ph"))
	ann.post(strings.Replace(in("there", "clone"), line, "func taxes(c Cart) int {", 1))
	owner.waitDerived()
	question := asking(t, "cart.go", "func taxes(c Cart) int {")
	got := string(ann.send("POST", "/api/why", question, 200).body)
	kit.Check(t, strings.Contains(got, `"there"`) && !strings.Contains(got, `"by_path":true`),
		"a clone's session is of another repository: %s", got)
	ann.send("POST", "/api/shares", `{"with":"bob","project":"clone"}`, 201)
	got = string(bob.send("POST", "/api/why", question, 200).body)
	kit.Check(t, strings.Contains(got, `"there"`) && strings.Contains(got, `"by_path":true`),
		"bob learns of a project that is not shared: %s", got)
}

// TestWhyAgent names the session that an agent worked for, and the prompt at that time.
func TestWhyAgent(t *testing.T) {
	r := newRig(t)
	const line = "func total(c Cart) int {"
	r.post(written("s", "10:00", "/home/kim/shop/other.go", "nothing of this commit\n").body("s"))
	agent := strings.Replace(written("s", "11:00", "/home/kim/shop/cart.go", line+"\n").body("s/agent-1"),
		`"parent_session_id":null`, `"parent_session_id":"s"`, 1)
	r.post(agent)
	r.waitDerived()
	question := strings.Replace(asking(t, "cart.go", line), "c0ffee", strings.Repeat("c0", 20), 1)
	got := string(r.send("POST", "/api/why", question, 200).body)
	for _, want := range []string{`"session_id":"s"`, `"line":0,"lines":1`, `"text":"write s"`} {
		kit.Has(t, "the answer", got, want)
	}
	kit.Has(t, "the session does", string(r.get("/api/sessions/s").body), `"added":1,"lines":1`)
}

// TestWhyIsNoted: a session shows how much of a commit it wrote once its user or an owner has asked, the same to all who
// may read it: whatever others wrote does not count, so that nobody learns of a session that they may not read.
func TestWhyIsNoted(t *testing.T) {
	owner := newRig(t)
	ann, bob, eve := owner.person("ann", server.Member), owner.person("bob", server.Member), owner.person("eve", server.Viewer)
	const first, second, third = "func total(c Cart) int {", "	return sumOfPrices(c)", "var taxes = ratesOfTheYear()"
	question := func(commit string, lines ...string) string {
		return strings.Replace(asking(t, "shop/cart.go", lines...), "c0ffee", strings.Repeat(commit, 20), 1)
	}
	about := question("c0", first, second, "}", third, "var byHand = \"a line of Kim's\"")
	noted := func(r *rig, session string) string {
		t.Helper()
		a := r.get("/api/sessions/" + session)
		if a.status != 200 {
			return fmt.Sprint(a.status)
		}
		var out []string
		for _, c := range decode[struct{ Commits []server.CommitShare }](t, a).Commits {
			out = append(out, fmt.Sprintf("%.4s %d of %d", c.Commit, c.Lines, c.Added))
		}
		return strings.Join(out, ", ")
	}
	want := func(when string, r *rig, session, want string) {
		t.Helper()
		kit.Equal(t, fmt.Sprintf("%s: %s shows", when, session), noted(r, session), want)
	}
	ann.post(written("anns", "10:00", "/home/ann/shop/cart.go", first+"\n"+second+"\n}\n").body("anns"))
	owner.waitDerived()
	ann.send("POST", "/api/why", about, 200)
	want("asked by ann", ann, "anns", "c0c0 3 of 5")
	before := string(ann.get("/api/sessions/anns").body)

	bob.post(written("bobs", "11:00", "/home/bob/shop/cart.go", first+"\n"+second+"\n"+third+"\n").body("bobs"))
	owner.waitDerived()
	want("not asked by bob", bob, "bobs", "")
	for _, r := range []*rig{ann, owner, bob} {
		r.send("POST", "/api/why", about, 200)
	}
	want("asked by all", bob, "bobs", "c0c0 3 of 5")
	want("asked by all", owner, "bobs", "c0c0 3 of 5")
	want("asked by all", bob, "anns", "404")
	kit.Equal(t, "ann learns of bob's session: …, before", string(ann.get("/api/sessions/anns").body), before)

	ann.send("POST", "/api/shares", `{"with":"bob","project":"ph"}`, 201)
	ann.send("POST", "/api/shares", `{"with":"eve","project":"ph"}`, 201)
	want("shared", bob, "anns", "c0c0 3 of 5")
	for _, r := range []*rig{bob, eve} {
		r.send("POST", "/api/why", question("d0", first, second), 200)
	}
	want("of a commit that others say there is", ann, "anns", "c0c0 3 of 5")
	want("of one that its user says there is", bob, "bobs", "c0c0 3 of 5, d0d0 2 of 2")
	ann.send("GET", "/api/why?q="+url.QueryEscape(question("e0", first, second)), "", 200)
	ann.send("POST", "/api/why", asking(t, "shop/cart.go", first, second), 200)
	want("by reading, and without a whole hash", ann, "anns", "c0c0 3 of 5")
	owner.send("POST", "/api/why", question("f0", third, first), 200)
	want("asked by an owner", bob, "bobs", "c0c0 3 of 5, d0d0 2 of 2, f0f0 2 of 2")
	want("asked by an owner", ann, "anns", "c0c0 3 of 5, f0f0 1 of 2")

	ann.send("DELETE", "/api/sessions/anns", "", 200)
	want("forgotten", owner, "anns", "404")
	want("another one forgotten", bob, "bobs", "c0c0 3 of 5, d0d0 2 of 2, f0f0 2 of 2")
}
