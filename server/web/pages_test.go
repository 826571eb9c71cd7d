package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

func prompt(text, model, at string) []string {
	return []string{fmt.Sprintf(`{"type":"user","uuid":"%[1]s","timestamp":"%[2]s","gitBranch":"b-%[1]s","message":{"role":"user","content":"%[1]s"}}`, text, at),
		fmt.Sprintf(`{"type":"assistant","uuid":"a%[1]s","parentUuid":"%[1]s","timestamp":"%[2]s","gitBranch":"b-%[1]s","requestId":"r%[1]s","message":{"id":"m%[1]s","role":"assistant","model":"%[3]s","content":[{"type":"text","text":"answer to %[1]s"}],"usage":{"input_tokens":1000000,"output_tokens":1000000}}}`, text, at, model)}
}

// shelf stores sessions of two projects on two machines.
func shelf(t *testing.T, s *site) {
	t.Helper()
	for _, x := range []struct{ id, project, machine, text, model, at string }{
		{"s1", "shop", "m1", "alpha", "claude-opus-4-8", "2026-11-18T10:00:00Z"}, {"s2", "shop", "m2", "beta", "claude-sonnet-4-5-20250929", "2026-11-19T23:30:00Z"},
		{"s3", "garden", "m1", "gamma", "claude-opus-4-8", "2026-11-20T10:00:00Z"}, {"s4", "garden", "", "delta", "nameless", "2026-11-20T11:00:00Z"},
	} {
		h := head(x.id)
		h.Project, h.ProjectHash, h.Machine, h.Host, h.Cwd = x.project, "sha-"+x.project, x.machine, "host-"+x.machine, "/home/kim/"+x.project
		if x.machine == "" {
			h.Host, h.Epoch = "", ""
		}
		s.put(t, h, prompt(x.text, x.model, x.at)...)
	}
}

func TestList(t *testing.T) {
	s := loggedIn(t)
	shelf(t, s)
	page := s.get(t, "/")
	mustHave(t, page, "alpha", "beta", "gamma", "delta", "host-m1", "host-m2", "a plain client", "opus-4-8", "sonnet-4-5", "b-alpha", "2 messages",
		`data-session="s1"`, `href="/sessions/s1"`, "2.0M tokens")
	mustLack(t, page, `class="row live"`)
	s.put(t, head("now"), prompt("epsilon", "claude-opus-4-8", today.UTC().Format(time.RFC3339))...)
	mustHave(t, s.get(t, "/?q=epsilon"), `class="row live"`)
	groups := sections(t, page)
	if len(groups) != 3 || !strings.Contains(groups[0], "delta") || !strings.Contains(groups[0], "gamma") || !strings.Contains(groups[1], "19 November beta ") {
		t.Errorf("groups %q", groups)
	}
	for q, want := range map[string]string{
		"project=sha-shop": "alpha beta", "machine=m1": "alpha gamma", "machine=-": "delta", "model=claude-opus-4-8": "alpha gamma", "branch=b-beta": "beta",
		"q=gam": "gamma", "q=garden": "gamma delta", "until=2000-01-01": "", "since=2000-01-01": "alpha beta gamma delta", "since=nonsense": "alpha beta gamma delta",
		"machine=none": "", "user=kim": "alpha beta gamma delta", "q=%27%3B--%22%25_": "", "project=sha-shop&machine=m2": "beta",
	} {
		page := s.get(t, "/?"+q)
		for _, text := range []string{"alpha", "beta", "gamma", "delta"} {
			shown, should := strings.Contains(page, `<bdi>`+text+`</bdi></a>`), strings.Contains(want, text)
			kit.Check(t, shown == should, "%s shows %s: %v", q, text, shown)
		}
	}
}

func TestListChoices(t *testing.T) {
	s := loggedIn(t)
	shelf(t, s)
	mustHave(t, s.get(t, "/?machine=m1&model=claude-opus-4-8&project=shop&branch=b-alpha&since=2026-01-02"), `<option value="m1" selected>host-m1</option>`,
		`<option value="claude-opus-4-8" selected>opus-4-8</option>`, `name="branch" value="b-alpha"`, `name="since" value="2026-01-02"`,
		`action="/p/shop"`, `<details class="more-filters" open>`)
	mustHave(t, s.get(t, "/projects?project=shop&bare=1"), `aria-current="true"><span><bdi>shop</bdi>`, "3 machines", "8.0M tokens")
	mustLack(t, s.get(t, "/projects?project=shop&bare=1"), "bare=1")
}

func TestListPages(t *testing.T) {
	s := loggedIn(t)
	for i := range 70 {
		b := &server.Batch{Owner: s.owner.ID, Received: today.Add(time.Duration(i) * time.Second), Head: head(fmt.Sprintf("session-%02d", i)), Lines: []server.Line{{Raw: []byte(`{}`)}}}
		b.Head.EndLine = 1
		kit.Must(t, s.store.Put(t.Context(), b))
	}
	first := s.get(t, "/")
	mustHave(t, first, "session-69", "session-10")
	mustLack(t, first, "session-09", "← Newest")
	_, rest, found := strings.Cut(first, `<a rel="next" href="`)
	kit.Require(t, found, "no second page")
	next, _, _ := strings.Cut(rest, `"`)
	second := s.get(t, html.UnescapeString(next))
	mustHave(t, second, "session-09", "session-00", "← Newest")
	mustLack(t, second, "session-10", `rel="next"`)
}

func TestUsage(t *testing.T) {
	s := loggedIn(t)
	shelf(t, s)
	page := s.get(t, "/usage?range=all")
	mustHave(t, page, "Wed, 18 Nov 2026: opus-4-8 $", "Thu, 19 Nov 2026: sonnet-4-5 $", "By model", "By project", "By machine", `<th scope="row">2026-11-18</th>`, `<dt>Responses</dt><dd>4</dd>`)
	tokens := s.get(t, "/usage?range=all&measure=tokens&by=project")
	mustHave(t, tokens, "Wed, 18 Nov 2026: shop 2.0M", "Fri, 20 Nov 2026: garden 4.0M", `<li><a href="/usage?by=project&amp;measure=tokens&amp;range=all" aria-current="true">All tokens</a></li>`)
	mustHave(t, s.get(t, "/usage?range=all&measure=tokens&by=machine&project=sha-garden"), "a plain client 2.0M", "host-m1 2.0M")
	mustLack(t, s.get(t, "/usage?range=all&project=sha-garden"), "sonnet")
	mustHave(t, s.get(t, "/usage?range=all&project=none"), "No token use")
	u := kit.Try(url.Parse(s.URL)).Must(t)
	s.client.Jar.SetCookies(u, []*http.Cookie{{Name: "ccship_zone", Value: "60"}})
	mustHave(t, s.get(t, "/usage?range=all"), "Fri, 20 Nov 2026: sonnet-4-5", "Fri 00:00: 1 answer")
}

func TestCompare(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	page := s.get(t, sessionPath(tourID, "/compare"))
	mustHave(t, page, "1 line dropped", `<article class="item prompt`, "<code>/review</code>", `records=1">Records</a>`, `id="L50"`)
	mustLack(t, page, "unchanged lines</td>", `id="L49"`)
	page = s.get(t, sessionPath(tourID, "/compare", "records", "1"))
	mustHave(t, page, `data-name="0" data-stamp="2026-`, ` UTC</option>`, "1 line dropped", "0 lines new", "54 lines unchanged", "/review 42", "50 unchanged lines", "4 unchanged lines", "/entry/50?epoch=e1&amp;generation=0")
	mustHave(t, s.get(t, sessionPath(tourID, "/compare", "a", "1", "b", "0")), "0 lines dropped", "1 line new", "What stands there instead")
	mustHave(t, s.get(t, sessionPath(tourID, "/compare", "a", "1", "b", "1")), "The two are identical")
	for _, q := range [][]string{{"a", "9"}, {"b", "9"}, {"ea", "none"}, {"eb", "none"}} {
		s.wants(t, 404, "GET", sessionPath(tourID, "/compare", q...), nil)
	}
	// Another epoch is another past: all of it is compared.
	h := head(tourID)
	h.Epoch = "e2"
	s.put(t, h, fixture(t, "tour.jsonl")[:20]...)
	page = s.get(t, sessionPath(tourID, "/compare", "ea", "e1", "a", "1", "eb", "e2", "b", "0"))
	mustHave(t, page, "34 lines dropped", "20 lines unchanged", ">e1</a>", ">e2</a>")
	mustHave(t, s.get(t, "/drops"), "1 line dropped", "/compare?")
	mustHave(t, s.get(t, "/"), "lines dropped")
}

// TestDroppedLinesAreCountedOnce: the list of rewinds and the comparison say the same number of a rewrite that
// kept some lines in another place, and a blank one that nobody misses.
func TestDroppedLinesAreCountedOnce(t *testing.T) {
	s := loggedIn(t)
	h := head(tourID)
	said := func(text string) string {
		return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%q}}`, text)
	}
	lines := []string{said("first")}
	for i := range 33 {
		lines = append(lines, said(fmt.Sprintf("prompt %d", i)))
	}
	s.put(t, h, append(lines, "")...)
	h.Generation, h.RewoundTo = 1, 1
	s.put(t, h, said("new"), lines[30], lines[10], lines[20])
	mustHave(t, s.get(t, "/drops"), "30 lines dropped", "between lines 2 and 34")
	mustHave(t, s.get(t, sessionPath(tourID, "/compare")), "30 lines dropped", "1 line new")
}

func TestExport(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	lines := fixture(t, "tour.jsonl")
	get := func(format string) answer {
		a := s.do(t, "GET", sessionPath(tourID, "/export", "format", format, "generation", "0"), nil, nil)
		kit.Require(t, a.code == 200 && strings.Contains(a.header.Get("Content-Disposition"), tourID+"."+format),
			"%s: %d %v", format, a.code, a.header)
		return a
	}
	kit.Equal(t, "jsonl is not the file", get("jsonl").body, strings.Join(lines, "\n")+"\n")
	var doc struct {
		Schema  int `json:"schema_version"`
		Title   string
		Models  []string
		Cost    float64 `json:"cost_usd"`
		Entries []struct {
			Line   int64
			Record json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(get("json").body), &doc); err != nil || doc.Schema != 1 || len(doc.Entries) != len(lines) || string(doc.Entries[7].Record) != lines[7] {
		t.Errorf("json: %v, %d entries", err, len(doc.Entries))
	}
	kit.Check(t, doc.Title == "Rounding in the cart: count cents" && len(doc.Models) != 0 && doc.Cost > 0,
		"json is about %q, %v, %v", doc.Title, doc.Models, doc.Cost)
	page := get("html").body
	mustHave(t, page, "<h1><bdi>Rounding in the cart: count cents</bdi>", "at list prices", "opus", "2026-11-20 0", "<style>", "data:image/png;base64,", "counts cents", "Rewound to line 42")
	mustLack(t, page, "<script", "/assets/", "https://tracker.example\"", ">raw<")
	md := get("md").body
	mustHave(t, md, "# Rounding in the cart: count cents\n", "- Project: `shop`\n- Date: `2026-", "- Model: `", "- Cost: `$", "- Session: `"+tourID, "## You", "## Claude", "Totals in the cart", "**Bash** ", "```bash\ngo test ./...", "*Conversation auto-compacted", "Failed of Bash")
	// A fence in the text does not end the block around it.
	s.put(t, head("fence"), `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a\n`+"````\\nb"+`"}]}}`)
	mustHave(t, s.get(t, sessionPath("fence", "/export", "format", "md")), "`````\na\n````\nb\n`````")
	s.wants(t, 400, "GET", sessionPath(tourID, "/export", "format", "exe"), nil)
}

// TestFollow: changes are announced to readers who may see them, and the lines after a line can be fetched.
func TestFollow(t *testing.T) {
	s := newSite(t, nil)
	s.tour(t)
	ana := s.addUser(t, "ana", server.Member)
	anas := s.addKey(t, ana, "tower")
	s.login(t, s.key)
	all, one, other := s.listen(t, "/events"), s.listen(t, "/events?session="+tourID+"&machine="+machine), s.listen(t, "/events?session=x&machine=")
	owner := s.client
	s.client = newClient(t)
	s.login(t, anas)
	hers := s.listen(t, "/events")
	s.client = owner
	h := head(tourID)
	h.Generation, h.RewoundTo = 1, 50
	lines := fixture(t, "tour.jsonl")[51:]
	// The result of the last call, and an answer.
	lines = append(lines, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01Tour00000013","content":"all fine"}]}}`,
		`{"type":"assistant","message":{"role":"assistant","id":"new","model":"claude-opus-4-8","content":[{"type":"text","text":"The code is **fine**."}]}}`)
	s.put(t, h, lines...)
	for name, events := range map[string]<-chan string{"all": all, "one": one} {
		want := `{"session":"` + tourID + `","machine":"` + machine + `","owner":1,"generation":1,"from":54,"to":56}`
		kit.Equal(t, name+" receives", <-events, want)
	}
	h = head("ana-1")
	s.putAs(t, ana, h, `{"type":"user","message":{"role":"user","content":"hers"}}`)
	kit.Has(t, "a member receives", <-hers, "ana-1")
	select {
	case got := <-other:
		t.Errorf("a page of another session receives %s", got)
	default:
	}
	a := s.do(t, "GET", sessionPath(tourID, "/tail", "after", "53"), nil, nil)
	kit.Check(t, a.header.Get("Ccship-Last") == "55" && a.header.Get("Ccship-Generation") == "1", "%v", a.header)
	got := items(t, a.body)
	if len(got) != 2 || !strings.Contains(got["L54"], "Bash go vet ./... && staticcheck ./... Check the code The call is on line 54 all fine") || !strings.Contains(got["L55"], "The code is fine.") {
		t.Errorf("%q", got)
	}
	mustHave(t, a.body, `data-call="toolu_01Tour00000013"`)
	mustLack(t, a.body, "<html", "<script")
	if a := s.do(t, "GET", sessionPath(tourID, "/tail", "after", "55"), nil, nil); a.header.Get("Ccship-Last") != "55" || len(items(t, a.body)) != 0 {
		t.Errorf("at the end: %v %s", a.header, a.body)
	}
	mustHave(t, s.get(t, sessionPath(agentID, "/tail", "after", "-1", "inside", "1")), "Task", "Three templates", `class="inside"`)
}

// TestFollowersEach: one user who follows too often leaves space for others, and may come back.
func TestFollowersEach(t *testing.T) {
	s := newSite(t, nil)
	s.login(t, s.key)
	follow := func(c *http.Client) (status int, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		req := kit.Try(http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/events", nil)).Must(t)
		res := kit.Try(c.Do(req)).Must(t)
		leave = func() { cancel(); _ = res.Body.Close() } // it ended with ctx
		t.Cleanup(leave)
		return res.StatusCode, leave
	}
	var leave func()
	for range 64 {
		_, leave = follow(s.client)
	}
	code, _ := follow(s.client)
	kit.Check(t, code == http.StatusServiceUnavailable, "one more: %d", code)
	kims := s.client
	s.as(t, s.addUser(t, "ana", server.Member))
	code, _ = follow(s.client)
	kit.Check(t, code == http.StatusOK, "another user: %d", code)
	leave()
	for code := 0; code != http.StatusOK; { // until it has gone there
		code, leave = follow(kims)
		leave()
	}
}

// listen answers the data of events as they come, once the stream has begun.
func (s *site) listen(t *testing.T, path string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req := kit.Try(http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)).Must(t)
	res := kit.Try(s.client.Do(req)).Must(t)
	kind := res.Header.Get("Content-Type")
	kit.Require(t, kind == "text/event-stream", "%s is %s", path, kind)
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() || lines.Text() != ": hello" {
		t.Fatalf("it begins with %q", lines.Text())
	}
	out, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				out <- data
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = res.Body.Close() // it ended with ctx
	})
	return out
}

// TestExportFarLine: a line number may be anything; an export steps over what is not stored.
func TestExportFarLine(t *testing.T) {
	s := loggedIn(t)
	const far = 1<<53 - 2
	h := head("far")
	h.EndLine = far + 1
	prompt := func(text string) []byte {
		return []byte(`{"type":"user","message":{"role":"user","content":"` + text + `"}}`)
	}
	kit.Must(t, s.store.Put(t.Context(), &server.Batch{Owner: s.owner.ID, Received: today, Head: h, Lines: []server.Line{
		{Index: 0, Raw: prompt("the first")}, {Index: 1 << 40, Raw: prompt("the second")}, {Index: far, Raw: prompt("the last")},
	}}))
	for _, format := range []string{"md", "html", "json", "jsonl"} {
		body := s.get(t, sessionPath("far", "/export", "format", format))
		mustHave(t, body, "the first", "the second", "the last")
		kit.Check(t, len(body) <= 1<<20, "%s has %d bytes", format, len(body))
	}
}
