package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
)

// answered is an assistant's line with tokens.
func answered(id, model, at string, input, output int) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":"u-%s","parentUuid":null,"sessionId":"s","timestamp":%q,"requestId":"r-%s",`+
		`"message":{"id":%q,"model":%q,"role":"assistant","type":"message","content":[{"type":"text","text":"found in answer %s"}],`+
		`"usage":{"input_tokens":%d,"output_tokens":%d,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}}`,
		id, at, id, id, model, id, input, output)
}

func prompted(text, at string) string {
	b, _ := json.Marshal(text)
	return fmt.Sprintf(`{"type":"user","uuid":"p-%s","parentUuid":null,"sessionId":"s","timestamp":%q,"message":{"role":"user","content":%s}}`, at, at, b)
}

// talk posts one conversation: a prompt and three answers of two models, one of them without a price.
func (r *rig) talk(session string) {
	r.post(piece{lines: []string{
		prompted("Why is the <b>elephant</b> purple?", "2026-11-20T23:30:00Z"),
		answered("m1-"+session, "claude-opus-5", "2026-11-20T23:30:10Z", 1000, 2000),
		answered("m2-"+session, "claude-opus-5", "2026-11-21T00:30:00Z", 1000, 0),
		answered("m3-"+session, "unheard-of", "2026-11-21T00:31:00Z", 7, 0),
	}}.body(session))
	r.waitDerived()
}

// TestEveryCall makes every call there is, with success: each answer matches openapi.yaml.
func TestEveryCall(t *testing.T) {
	r := newRig(t, func(s *api.Server) {
		s.Export = func(_ context.Context, w io.Writer, snap server.Snapshot, format string) error {
			_, err := fmt.Fprintf(w, "%s as %s", snap.Session().SessionID, format)
			return err
		}
	})
	r.person("ann", server.Member)
	r.talk("s")
	r.post(piece{gen: 1, rewound: 2, first: 2, lines: objects("a", 2, 3)}.body("s"))
	r.waitDerived()
	for _, path := range []string{
		"/healthz", "/metrics", "/api/sessions", "/api/sessions?order=recent&limit=1", "/api/groups", "/api/sessions/s", "/api/sessions/s/entries?limit=2",
		"/api/sessions/s/raw", "/api/sessions/s/digest", "/api/sessions/s/digest?epochs=all", "/api/sessions/s/digest?from=0&to=2",
		"/api/sessions/s/export", "/api/sessions/s/export?format=json", "/api/sessions/s/export?format=md", "/api/sessions/s/export?format=html",
		"/api/search?q=elephant", "/api/search?q=answer&facets=1&limit=1", "/api/sessions/s/mark", "/api/views", "/api/sessions?order=cost&limit=2", "/api/sessions?order=time&failed=1&starred=1&tag=b", "/api/usage", "/api/usage?by=day,hour,project,model,machine,user,session",
		"/api/drops", "/api/sessions/s/timeline", "/api/forgotten", "/api/ledger?machine=m1", "/api/me", "/api/users", "/api/keys", "/api/shares", "/api/openapi.yaml",
	} {
		r.send("GET", path, "", 200)
	}
	const commits = `{"commits":[{"commit":"x","at":"2026-03-12T20:00:00Z","files":[{"paths":["cart.go"],"lines":[]}]}]}`
	r.send("POST", "/api/why", commits, 200)
	r.get("/api/why?q=" + url.QueryEscape(commits))
	r.here()
	r.proof(r.key)
	r.everyArtifactCall()
	r.send("PUT", "/api/sessions/s/mark", `{"star":true,"name":"The elephant","note":"look again","tags":["b","a","b"]}`, 200)
	r.send("PUT", "/api/sessions/s/mark", `{"tags":["a,b"]}`, 400)
	r.get("/api/sessions/s/mark")
	r.send("PUT", "/api/views/mine", `{"query":"view=failed"}`, 200)
	r.send("DELETE", "/api/views/mine", "", 200)
	link := decode[shareLink](t, r.send("POST", "/api/sessions/s/share-links", `{}`, 201))
	r.get("/api/share-links?session=s")
	r.send("DELETE", "/api/share-links/"+fmt.Sprint(link.ID), "", 200)
	r.send("POST", "/api/sessions/s/mask", `{"machine":"m1"}`, 200)
	r.get("/api/maskings")
	r.send("POST", "/api/sessions/s/copy", `{"from_machine":"m1","to_machine":"m2","epoch":"copy","lines":1}`, 200)
	r.send("POST", "/api/sessions/s/export?format=json", "", 200)
	r.send("POST", "/api/digests", `{"sessions":[{"session_id":"s"},{"session_id":"s","machine":"m1","epoch":"e1"},{"session_id":"no","machine":"m"}]}`, 200)
	r.send("POST", "/api/digests", `{"sessions":[{"session_id":"s"}],"epochs":"all"}`, 200)
	r.send("POST", "/api/digests", `{"sessions":[]}`, 200)
	r.send("POST", "/api/users", `{"name":"bob","role":"viewer"}`, 201)
	r.send("PATCH", "/api/users/bob", `{"role":"member","disabled":true}`, 200)
	r.send("POST", "/api/keys", `{"name":"k"}`, 201)
	r.send("POST", "/api/keys/k/rotate", `{}`, 200)
	r.send("DELETE", "/api/keys/k", "", 200)
	r.send("POST", "/api/shares", `{"with":"ann","project":"ph"}`, 201)
	r.send("DELETE", "/api/shares", `{"with":"ann","project":"ph"}`, 200)
	r.send("POST", "/api/tickets", `{}`, 201)
	r.send("DELETE", "/api/sessions/s", "", 200)
	kit.Has(t, "forgotten", string(r.get("/api/forgotten").body), `"session_id":"s"`)
	e := r.listen("", nil)
	e.close()

	c := kit.Try(theContract()).Must(t)
	if unseen := c.unseen(); len(unseen) > 0 {
		slices.Sort(unseen)
		t.Errorf("not called: %q", unseen)
	}
}

// TestUsage counts each answer once, by what is asked for, with the cost of the models whatever the rows are.
func TestUsage(t *testing.T) {
	r := newRig(t)
	r.talk("s")
	r.talk("t")
	type row struct {
		Day, Model, User string
		SessionID        string `json:"session_id"`
		Answers          int
		Input            int      `json:"input_tokens"`
		Cost             *float64 `json:"cost_usd"`
		Unpriced         int      `json:"unpriced_tokens"`
	}
	var a struct {
		Rows  []row
		Total row
	}
	r.getJSON("/api/usage?by=day", &a)
	kit.Check(t, len(a.Rows) == 2 && a.Rows[0].Day == "2026-11-20" && a.Rows[0].Answers == 2 && a.Rows[1].Unpriced == 14 &&
		a.Rows[1].Cost != nil, "by day: %+v", a.Rows)
	const want = 2 * (1000*5 + 2000*25 + 1000*5) / 1e6
	kit.Check(t, a.Total.Answers == 6 && a.Total.Input == 4014 && a.Total.Cost != nil && *a.Total.Cost >= want-1e-9 &&
		*a.Total.Cost <= want+1e-9, "total: %+v", a.Total)
	a.Rows = nil
	r.getJSON("/api/usage?by=day&zone=%2B01:00", &a)
	kit.Check(t, len(a.Rows) == 1 && a.Rows[0].Day == "2026-11-21", "by day in Berlin: %+v", a.Rows)
	a.Rows = nil
	r.getJSON("/api/usage?by=model,session&session=t", &a)
	for _, x := range a.Rows {
		kit.Check(t, x.SessionID == "t" && (x.Model == "unheard-of") == (x.Cost == nil), "by model of t: %+v", x)
	}
	for _, bad := range []string{"by=shoes", "zone=Berlin", "since=soon", "agents=2"} {
		r.send("GET", "/api/usage?"+bad, "", 400)
	}
}

// TestSessionSummary: a listing shows what is derived, its use of tokens and their cost, its agents' included.
func TestSessionSummary(t *testing.T) {
	r := newRig(t)
	r.talk("s")
	type found struct {
		Summary struct {
			FirstPrompt string `json:"first_prompt"`
			Model       string
			Prompts     int
			Started     string
		}
		Usage []struct {
			Model string
			Cost  *float64 `json:"cost_usd"`
		}
		Cost     float64 `json:"cost_usd"`
		Unpriced int     `json:"unpriced_tokens"`
	}
	var list struct{ Sessions []found }
	agent := piece{lines: []string{answered("m4-s", "claude-opus-5", "2026-11-21T00:30:00Z", 1000, 2000)}}.body("s/agent-1")
	r.post(strings.Replace(agent, `"parent_session_id":null`, `"parent_session_id":"s"`, 1))
	r.waitDerived()
	r.getJSON("/api/sessions?agents=0", &list)
	var one found
	r.getJSON("/api/sessions/s", &one)
	for _, f := range append(list.Sessions, one) {
		kit.Check(t, f.Summary.FirstPrompt == "Why is the <b>elephant</b> purple?" && f.Summary.Prompts == 1 &&
			strings.HasPrefix(f.Summary.Started, "2026-11-20T23:30:00") && len(f.Usage) == 2 && f.Cost >= 0.1149 &&
			f.Cost <= 0.1151 && f.Unpriced == 7, "%+v", f)
	}
	for query, n := range map[string]int{"model=claude-opus-5": 1, "model=unheard": 0, "text=elephant": 1, "text=zebra": 0, "since=2100-01-01": 0, "until=2000-01-01": 0, "machine=m1": 1, "machine=": 0} {
		r.getJSON("/api/sessions?agents=0&"+query, &list)
		kit.Check(t, len(list.Sessions) == n, "%s: %d sessions, want %d", query, len(list.Sessions), n)
	}
}

// TestSearchCall: a hit's snippet says what was found, as plain text.
func TestSearchCall(t *testing.T) {
	r := newRig(t)
	r.talk("s")
	var a struct {
		Sessions []struct {
			Session struct {
				SessionID string `json:"session_id"`
			}
			Prompt string `json:"first_prompt"`
			Hits   []struct {
				Line    int `json:"line_index"`
				Kind    string
				Snippet []struct {
					Text  string
					Match bool
				}
				Current bool
			}
		}
		Total  int
		Facets struct{ Kinds []protocol.Count }
	}
	r.getJSON("/api/search?q=elephant", &a)
	kit.Require(t, len(a.Sessions) != 0 && len(a.Sessions[0].Hits) != 0, "nothing was found")
	h := a.Sessions[0].Hits[0]
	kit.Check(t, a.Sessions[0].Prompt != "", "the answer does not say how the session begins")
	text, matched := "", ""
	for _, p := range h.Snippet {
		text += p.Text
		if p.Match {
			matched += p.Text
		}
	}
	kit.Check(t, a.Sessions[0].Session.SessionID == "s" && h.Line == 0 && h.Kind == "prompt" && h.Current &&
		matched == "elephant" && strings.Contains(text, "<b>elephant</b>"), "%+v", h)
	for query, want := range map[string]int{
		"q=": 400, "": 400, "q=%20": 400, "q=x+kind:shoes": 200, "q=x&after=nonsense": 400, "q=x&limit=0": 400, "q=%ff": 400, "q=%00": 400,
		"q=%22": 400, "q=%22elephant": 200, "q=*": 200, "q=NEAR(": 200, "q=a+OR+b": 200, "q='--": 200, "q=%25": 200, "q=kind:prompt,answer+purple": 200,
		"q=tool:Bash": 200, "q=tool:*": 200, "q=tool:mcp__*+file:x+y": 200, "q=is:lost": 200, "q=/x(/": 200, "q=x&each=0": 400,
	} {
		r.send("GET", "/api/search?"+query, "", want)
	}
}

// TestFilterMeta: what means something to a database means nothing in a filter.
func TestFilterMeta(t *testing.T) {
	r := newRig(t)
	r.talk("s")
	for _, v := range []string{"'", "%25", "_", "%5C", "%22", "'%3B--", "%0A", "s'%20OR%20'1'='1", "%E2%80%AE"} {
		for _, name := range []string{"project", "machine", "user", "model", "branch", "parent"} {
			a := r.get("/api/sessions?" + name + "=" + v)
			kit.Check(t, a.status == 200 && bytes.Contains(a.body, []byte(`"sessions":[]`)), "%s=%s: %d %.200s", name, v,
				a.status, a.body)
		}
		for _, path := range []string{"/api/sessions?text=", "/api/usage?session=", "/api/drops?session=", "/api/usage?project="} {
			r.send("GET", path+v, "", 200)
		}
	}
	for _, v := range []string{"%00", "%ff", strings.Repeat("x", 5000)} {
		for _, path := range []string{"/api/sessions?project=", "/api/sessions?machine=", "/api/usage?model=", "/api/drops?session=", "/api/events?session="} {
			r.send("GET", path+v, "", 400)
		}
	}
	kit.Equal(t, "a query that cannot be read", r.get("/api/sessions?machine=x;y").status, 400)
	for _, id := range []string{"%00", "%ff", "'", "..%2F..%2Fetc", "%25", "s%20"} {
		r.send("GET", "/api/sessions/"+id, "", http.StatusNotFound)
	}
}

// TestForgetCall: what is forgotten is gone, and what still comes of it is acknowledged and not stored.
func TestForgetCall(t *testing.T) {
	owner := newRig(t)
	ann := owner.person("ann", server.Member)
	ann.post(piece{lines: objects("a", 0, 3)}.body("s"))
	ann.post(strings.Replace(piece{lines: objects("a", 0, 2)}.body("s/agent-1"), `"parent_session_id":null`, `"parent_session_id":"s"`, 1))
	ann.post(piece{lines: objects("a", 0, 3)}.body("other"))
	a := ann.send("DELETE", "/api/sessions/s", "", 200)
	gone := decode[struct {
		Lines int `json:"lines_removed"`
	}](t, a)
	kit.Check(t, gone.Lines == 5, "%s", a.body)
	for _, id := range []string{"s", "s%2Fagent-1"} {
		ann.send("GET", "/api/sessions/"+id, "", 404)
	}
	for _, id := range []string{"s", "s/agent-1", "s/agent-2"} {
		a := ann.send("POST", "/api/conversations", piece{lines: objects("a", 0, 3)}.body(id), 200)
		kit.Equal(t, id, strings.TrimSpace(string(a.body)), `{"success":true,"entries_stored":0,"forgotten":true}`)
	}
	kit.Equal(t, "there is", ann.sessionsOf(""), "ann:other")
	ann.send("DELETE", "/api/sessions/s", "", 404)
}

// TestCursor: pages go on in the view they began in, whatever comes meanwhile.
func TestCursor(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: objects("a", 0, 5)}.body("s"))
	type page struct {
		Generation int
		Epoch      string
		Cursor     *string
		Entries    []struct {
			Line   int `json:"line_index"`
			Record map[string]int
		}
	}
	var p page
	r.getJSON("/api/sessions/s/entries?limit=2", &p)
	r.post(piece{gen: 1, rewound: 1, first: 1, lines: objects("b", 1, 3)}.body("s"))
	r.post(piece{machine: "m1", epoch: "e2", lines: objects("c", 0, 1)}.body("s"))
	r.post(piece{machine: "m2", epoch: "e1", lines: objects("d", 0, 5)}.body("s")) // heard last: the one without a machine
	r.post(piece{lines: objects("o", 0, 5)}.body("other"))
	var lines []string
	for {
		for _, e := range p.Entries {
			for k := range e.Record {
				lines = append(lines, fmt.Sprint(k, e.Line))
			}
		}
		if p.Cursor == nil {
			break
		}
		next := *p.Cursor
		p = page{}
		r.send("GET", "/api/sessions/other/entries?limit=2&cursor="+next, "", 400)
		r.getJSON("/api/sessions/s/entries?limit=2&cursor="+next, &p)
		kit.Check(t, p.Generation == 0 && p.Epoch == "e1", "the page is of generation %d, epoch %s", p.Generation, p.Epoch)
	}
	kit.Equal(t, "read", strings.Join(lines, " "), "a0 a1 a2 a3 a4")
	for _, bad := range []string{"x", "1.2", "1.x.e", "x.1.e", "-1.0.1.e1", "1.-5.1.e1", "0.0.e1", "0.0.0.e1", "0.0.99.e1", ""} {
		a := r.get("/api/sessions/s/entries?cursor=" + bad)
		kit.Check(t, a.status == 400 || a.status == 404, "cursor %q: %d", bad, a.status)
	}
}

// TestDigests answers many streams at once: each as /digest does.
func TestDigests(t *testing.T) {
	r := newRig(t)
	for i := range 5 {
		r.post(piece{lines: objects("a", 0, 3+i)}.body(fmt.Sprint("s", i)))
	}
	r.post(piece{gen: 1, rewound: 1, first: 1, lines: objects("b", 1, 3)}.body("s0"))
	r.post(piece{machine: "m1", epoch: "e2", lines: objects("c", 0, 1)}.body("s0"))
	a := r.send("POST", "/api/digests", `{"sessions":[{"session_id":"s3"},{"session_id":"s0","machine":"m1"},{"session_id":"s0","epoch":"e1"},{"session_id":"x"}]}`, 200)
	got := decode[struct{ Digests []json.RawMessage }](t, a).Digests
	kit.Require(t, len(got) == 4, "%s", a.body)
	for i, path := range []string{"s3/digest", "s0/digest", "s0/digest?epoch=e1"} {
		kit.Equal(t, path+" is", string(got[i]), strings.TrimSpace(string(r.get("/api/sessions/"+path).body)))
	}
	all := decode[struct {
		Epochs []struct {
			Epoch       string
			Generations []json.RawMessage
		}
	}](t, r.get("/api/sessions/s0/digest?epochs=all"))
	kit.Check(t, len(all.Epochs) == 2 && all.Epochs[0].Epoch == "e2" && len(all.Epochs[1].Generations) == 2, "%+v", all)
	many := strings.Repeat(`{"session_id":"s"},`, 1000) + `{"session_id":"s"}`
	r.send("POST", "/api/digests", `{"sessions":[`+many+`]}`, 400)
	r.send("POST", "/api/digests", `{"sessions":[{"session_id":"s"}],"epochs":"some"}`, 400)
}
