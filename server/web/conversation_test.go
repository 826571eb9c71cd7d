package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web"
	"github.com/ccship/ccship/transcript"
)

// items are the entries of a page: the words of each by its anchor.
func items(t *testing.T, page string) map[string]string {
	t.Helper()
	out := map[string]string{}
	nodes(t, page, func(n *html.Node) {
		if strings.HasPrefix(attr(n, "class"), "item ") {
			out[attr(n, "id")] = strings.Join(strings.Fields(words(n)), " ")
		}
	})
	return out
}

// itemsHave demands that items have words in them.
func itemsHave(t *testing.T, got, wants map[string]string) {
	t.Helper()
	for id, want := range wants {
		kit.Has(t, id, got[id], want)
	}
}

func TestConversation(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	page := s.get(t, sessionPath(tourID, ""))
	got := items(t, page)
	itemsHave(t, got, map[string]string{
		"L2": "Totals in the cart", "L4": "Thinking", "L6": "Bash rg -n 'Round|Total' --type go Find where totals are rounded", "L8": "Read cart.go", "L10": "float64", "L11": "Count in cents",
		"L16": "cart_test.go", "L19": "queued", "L27": "counts cents", "L30": "Image 1 of line 31", "L32": "agent", "L40": "/cost",
		"L45": "529 Overloaded", "L48": "auto-compacted at 167k tokens, 9.1k left", "L49": "Summary of the conversation so far", "L44-rewind": "Rewound to line 42", "L50-rewrite": "rewritten from this line on (generation 1)"})
	for _, id := range []string{"L0", "L1", "L3", "L7", "L9"} {
		_, there := got[id]
		kit.Check(t, !there, "%s is shown: %q", id, got[id])
	}
	mustHave(t, page, `<span class="f5">cart.go</span>`, `src="/sessions/`+short(tourID)+`/image/30/0"`,
		`href="/sessions/`+short(tourID)+`%2Fagent-a7f3c21b09d84e51"`, "claude --resume "+tourID, "lines dropped", "2 generations")
	for id, left := range map[string]bool{"L41": false, "L42": true, "L43": true, "L44": false} {
		kit.Check(t, strings.Contains(got[id], "removed by a rewind") == left, "%s is left: %v", id, !left)
	}
	all := items(t, s.get(t, sessionPath(tourID, "", "mode", "everything")))
	kit.Check(t, strings.Contains(all["L1"], "file-history-snapshot") && strings.Contains(all["L15"], "queue-operation"),
		"everything shows %q and %q", all["L1"], all["L15"])
	prompts := s.get(t, sessionPath(tourID, "", "mode", "prompts"))
	mustHave(t, prompts, "Totals in the cart", "also note it in the changelog", "Better: let the cart")
	mustLack(t, prompts, "I&#39;ll look at", "Total cost")
}

// TestResults: a result is with its call, also when it lies on the next page, and says whose it is when it is alone.
func TestResults(t *testing.T) {
	s := loggedIn(t)
	var lines []string
	call := func(n int) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","id":"m%d","model":"m","content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"echo %d"}}]}}`, n, n, n)
	}
	result := func(n int, failed bool) string {
		return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"output %d","is_error":%v}]}}`, n, n, failed)
	}
	for i := range 298 {
		lines = append(lines, fmt.Sprintf(`{"type":"mode","n":%d}`, i))
	}
	lines = append(lines, call(1), call(2), result(1, false), result(2, true), result(3, false))
	lines = append(lines, call(4))
	s.put(t, head("calls"), lines...)
	first := items(t, s.get(t, sessionPath("calls", "")))
	kit.Check(t, len(first) == 2 && strings.Contains(first["L298"], "Bash echo 1 echo 1 output 1") &&
		strings.Contains(first["L299"], "failed echo 2 output 2"), "%q", first)
	second := items(t, s.get(t, sessionPath("calls", "", "from", "300")))
	kit.Check(t, strings.Contains(second["L300"], "The call is on line 299") && strings.Contains(second["L301"], "Bash") &&
		(strings.Contains(second["L302"], "call not on this page") || strings.Contains(second["L302"], "output 3")) &&
		strings.Contains(second["L303"], "running"), "%q", second)
}

// numbered are so many prompts.
func numbered(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"type":"user","message":{"role":"user","content":"prompt %d"}}`, i))
	}
	return lines
}

func TestPermalink(t *testing.T) {
	s := loggedIn(t)
	lines := numbered(1000)
	lines[700] = `{"type":"mode","mode":"normal"}`
	s.put(t, head("long"), lines...)
	for line, mode := range map[int]string{0: "", 5: "", 299: "", 300: "", 699: "", 700: "everything", 999: ""} {
		a := s.do(t, "GET", sessionPath("long", "/L/"+strconv.Itoa(line)), nil, nil)
		u, err := url.Parse(a.path)
		kit.Check(t, err == nil && u.Query().Get("mode") == mode, "line %d leads to %s, want mode %q", line, a.path, mode)
		_, there := items(t, a.body)[fmt.Sprintf("L%d", line)]
		kit.Check(t, there, "line %d is not on %s", line, a.path)
	}
}

// TestPages: every line is on one of the pages that lead to each other.
func TestPages(t *testing.T) {
	s := loggedIn(t)
	s.put(t, head("long"), numbered(1000)...)
	seen, pages := map[string]bool{}, 0
	next := regexp.MustCompile(`<a rel="next" href="([^"]*)"`)
	for path := sessionPath("long", ""); path != ""; pages++ {
		page := s.get(t, path)
		for id := range items(t, page) {
			seen[id] = true
		}
		path = ""
		if m := next.FindStringSubmatch(page); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	kit.Check(t, len(seen) == 1000 && pages == 4, "%d lines on %d pages", len(seen), pages)
	end := s.get(t, sessionPath("long", "", "from", "end"))
	mustHave(t, end, `id="L999"`, `id="L700"`, "data-tail=")
	mustLack(t, end, `rel="next"`)
	mustHave(t, s.get(t, sessionPath("long", "")), `data-first="0" data-last="299" data-total="1000" data-generation="0" data-follow`)
	// What a page fetches as it is scrolled is what the pages have: the part behind a line, and the part before one.
	for q, want := range map[string]string{"after=299": "L300 L599 300 599", "after=99&to=250": "L100 L249 150 249",
		"after=-1&to=20": "L0 L19 20 19", "after=990": "L991 L999 9 999"} {
		a := s.do(t, "GET", sessionPath("long", "/tail")+"&"+q, nil, nil)
		got := items(t, a.body)
		n, _ := strconv.Atoi(strings.Fields(want)[2])
		kit.Check(t, len(got) == n && got[strings.Fields(want)[0]] != "" && got[strings.Fields(want)[1]] != "" &&
			a.header.Get("Ccship-Last") == strings.Fields(want)[3] && a.header.Get("Ccship-Total") == "1000",
			"%s: %d items, header %v", q, len(got), a.header)
	}
	prompts := s.get(t, sessionPath("long", "/prompts", "bare", "1"))
	kit.Equal(t, "prompts are listed", strings.Count(prompts, "<li "), 1000)
	mustLack(t, prompts, "<html")
}

// TestCut: a long text is cut on the page, whole on its own, and a page full of them is cut shorter.
func TestCut(t *testing.T) {
	s := loggedIn(t)
	long := strings.Repeat("word ", 10_000)
	var lines []string
	for range 80 {
		lines = append(lines, `{"type":"assistant","message":{"role":"assistant","id":"m","model":"m","content":[{"type":"text","text":"`+long+`"}]}}`)
	}
	s.put(t, head("wordy"), lines...)
	page := s.get(t, sessionPath("wordy", ""))
	kit.Check(t, len(page) <= 2<<20, "a page of %d bytes", len(page))
	mustHave(t, page, "more</p>", "Show all")
	kit.Has(t, "the entry alone", s.get(t, sessionPath("wordy", "/entry/0")), strings.TrimSpace(long))
}

// watched is a store that shows a test each line that pages read.
type watched struct {
	web.Store
	read      func(server.Line)
	underived bool // nothing is derived
}

func (w *watched) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	snap, err := w.Store.View(ctx, scope, ref)
	return &watchedSnapshot{snap, w}, err
}

type watchedSnapshot struct {
	server.Snapshot
	w *watched
}

func (s *watchedSnapshot) Lines(ctx context.Context, span server.Span, yield func(server.Line) error) error {
	return s.Snapshot.Lines(ctx, span, func(l server.Line) error {
		s.w.read(l)
		return yield(l)
	})
}

func (s *watchedSnapshot) Folded(ctx context.Context) (server.Position, []byte, error) {
	if s.w.underived {
		return server.Position{}, nil, nil
	}
	return s.Snapshot.Folded(ctx)
}

// TestBounded: a page of a large session reads a part of it, wherever that is, whether it is derived or not.
func TestBounded(t *testing.T) {
	s := loggedIn(t)
	text := strings.Repeat("x", 64<<10)
	var lines []string
	for range 350 {
		lines = append(lines, `{"type":"mode","mode":"`+text+`"}`)
	}
	s.put(t, head("large"), lines...)
	bytes := 0
	c := &watched{Store: s.store, read: func(l server.Line) { bytes += len(l.Raw) }}
	v := kit.Try(web.New(c, s.access)).Must(t)
	s.Config.Handler = v.Handler()
	for _, c.underived = range []bool{false, true} {
		for _, q := range [][]string{{}, {"from", "end"}, {"from", "150"}, {"from", "150", "mode", "everything"}} {
			bytes = 0
			s.get(t, sessionPath("large", "", q...))
			kit.Check(t, bytes <= 8<<20, "%v: %d bytes of %d were read", q, bytes, 350*len(text))
		}
		bytes = 0
		s.get(t, sessionPath("large", "/tail", "after", "150"))
		kit.Check(t, bytes <= 8<<20, "for what follows %d bytes were read", bytes)
	}
}

func TestEntry(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	lines := fixture(t, "tour.jsonl")
	page := s.get(t, sessionPath(tourID, "/entry/13"))
	sum := sha256.Sum256([]byte(lines[13]))
	offset := 13
	for _, l := range lines[:13] {
		offset += len(l)
	}
	text := strings.ReplaceAll(page, "\u202f", "")
	mustHave(t, text, hex.EncodeToString(sum[:]), fmt.Sprintf("%d at offset %d", len(lines[13]), offset), "Line 14", "kims-laptop", "-home-kim-shop/"+tourID+".jsonl",
		"seen in generation 1", "<code>e1</code>", "parentUuid")
	raw := s.do(t, "GET", sessionPath(tourID, "/bytes/13"), nil, nil)
	kit.Check(t, raw.body == lines[13] && raw.header.Get("Content-Type") == "application/octet-stream" &&
		strings.HasPrefix(raw.header.Get("Content-Disposition"), "attachment"), "the bytes: %v %q", raw.header, raw.body)
}

// TestGap: what is not on the server is said, and the offset behind it is not guessed.
func TestGap(t *testing.T) {
	s := loggedIn(t)
	h := head("gap")
	s.put(t, h, `{"type":"user","message":{"role":"user","content":"first"}}`)
	b := &server.Batch{Owner: s.owner.ID, Head: h, Lines: []server.Line{{Index: 4, Raw: []byte(`{"type":"user","message":{"role":"user","content":"last"}}`)}}}
	b.Head.EndLine = 6
	kit.Must(t, s.store.Put(t.Context(), b))
	mustHave(t, s.get(t, sessionPath("gap", "")), "Lines 2 to 4 are not on the server", "Line 6 is not on the server")
	mustHave(t, s.get(t, sessionPath("gap", "/entry/4")), "offset unknown")
}

// TestDamaged: what is no record is shown as it is; what can be found in it is shown as what it is.
func TestDamaged(t *testing.T) {
	s := loggedIn(t)
	s.put(t, head("damaged"), `not <b>json`, "", `{"type":"user","message":{"role":"user","content":"cut o{"type":"user","uuid":"b","message":{"role":"user","content":"glued"}}`,
		`{"type":"user","message":{"role":"user","content":"one"}}{"type":"user","message":{"role":"user","content":"two"}}`, `  "type": "user",`)
	got := items(t, s.get(t, sessionPath("damaged", "")))
	kit.Check(t, strings.Contains(got["L0"], "not <b>json") && strings.Contains(got["L0"], transcript.UnreadDamaged) &&
		strings.Contains(got["L4"], transcript.UnreadPiece) && strings.Contains(got["L2"], "glued") &&
		strings.Contains(got["L3"], "one") && strings.Contains(got["L3-2"], "two"), "%q", got)
}

func TestImages(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	a := s.do(t, "GET", sessionPath(tourID, "/image/30/0"), nil, nil)
	kit.Check(t, a.code == 200 && a.header.Get("Content-Type") == "image/png" && strings.HasPrefix(a.body, "\x89PNG"),
		"%d %v", a.code, a.header)
	csp := a.header.Get("Content-Security-Policy")
	kit.Check(t, csp == "default-src 'none'; sandbox" && a.header.Get("X-Content-Type-Options") == "nosniff", "%v", a.header)
	for _, n := range []string{"1", "-1", "x"} {
		s.wants(t, 404, "GET", sessionPath(tourID, "/image/30/"+n), nil)
	}
	// What claims to be a PNG and is none is not served.
	s.put(t, head("svg"), `{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+"}},{"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":"PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+"}}]}}`)
	for n := range 2 {
		s.wants(t, 404, "GET", sessionPath("svg", "/image/0/"+strconv.Itoa(n)), nil)
	}
	mustHave(t, s.get(t, sessionPath("svg", "")), "SVG, as source", "onload")
}

// TestPermalinksLand: the address of every line leads to a page with that line, results of tools included, and no two
// places of a page have one address.
func TestPermalinksLand(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	ids := regexp.MustCompile(` id="(L[^"]*)"`)
	landed := 0
	for i := range len(fixture(t, "tour.jsonl")) - 1 { // the last line is torn
		page := s.get(t, sessionPath(tourID, fmt.Sprintf("/L/%d", i)))
		kit.Has(t, fmt.Sprintf("line %d is", i), page, fmt.Sprintf(` id="L%d"`, i))
		seen := map[string]bool{}
		for _, m := range ids.FindAllStringSubmatch(page, -1) {
			kit.Check(t, !seen[m[1]], "the page of line %d has two %s", i, m[1])
			seen[m[1]] = true
		}
		landed++
	}
	kit.Check(t, landed >= 50, "only %d lines were looked for", landed)
}

// TestFind: a conversation is searched on its own page, and what is found leads to its lines.
func TestFind(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	s.put(t, head("other"), `{"type":"user","message":{"role":"user","content":"float64 elsewhere"}}`)
	page := s.get(t, sessionPath(tourID, "", "find", "float64"))
	mustHave(t, page, `class="finds"`, "<mark>float64</mark>", `name="find"`, `value="float64"`)
	mustLack(t, page, "elsewhere")
	mustHave(t, s.get(t, sessionPath(tourID, "", "find", "zzzz")), "Nothing in this conversation has")
	mustLack(t, s.get(t, sessionPath(tourID, "")), `class="finds"`)
}

// TestResultBeforeCall: a result that stands before its call in the file is shown with the call, once.
func TestResultBeforeCall(t *testing.T) {
	s := loggedIn(t)
	call := func(id string) string {
		return `{"type":"assistant","message":{"role":"assistant","id":"m","model":"m","content":[{"type":"tool_use","id":"` + id + `","name":"Bash","input":{"command":"run ` + id + `"}}]}}`
	}
	results := `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"of b"},{"type":"tool_result","tool_use_id":"x","content":"of nothing"}]}}`
	s.put(t, head("turned"), prompt("go", "m", ago(1))[0], call("a"), `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"of c"}]}}`, results, call("b"), call("c"))
	got := items(t, s.get(t, sessionPath("turned", "", "mode", "everything")))
	kit.Check(t, len(got) == 5 && got["L2"] == "" && strings.Contains(got["L3"], "of nothing") &&
		!strings.Contains(got["L3"], "of b") && strings.Contains(got["L4"], "run b") &&
		strings.Contains(got["L4"], "of b") && strings.Contains(got["L5"], "of c") &&
		!strings.Contains(got["L5"], "no result"), "%q", got)
}

// A conversation of four speakers, with an answer to a question and an advice: on its page, in its outline, its page of
// prompts, exports and searches, and each of them as who they are.
func TestSpeakers(t *testing.T) {
	s := loggedIn(t)
	n := 0
	record := func(rest string) string {
		n++
		return fmt.Sprintf(`{"uuid":"u%d","parentUuid":"u%d","sessionId":"S","timestamp":"2026-11-18T11:%02d:00.000Z",%s}`, n, n-1, n, rest)
	}
	answer := func(text string) string {
		return record(fmt.Sprintf(`"type":"assistant","message":{"id":"m%d","model":"claude-opus-5","stop_reason":"end_turn","content":[`+
			`{"type":"text","text":%q}]}`, n, text))
	}
	lines := []string{
		record(`"type":"user","origin":{"kind":"human"},"message":{"content":"plan the checkout"}`),
		record(`"type":"assistant","message":{"id":"m","model":"claude-opus-5","content":[{"type":"server_tool_use","id":"adv","name":"advisor",` +
			`"input":{}},{"type":"advisor_tool_result","tool_use_id":"adv","content":{"type":"advisor_result","text":"use one provider"}}]}`),
		record(`"type":"assistant","message":{"id":"m2","model":"claude-opus-5","content":[{"type":"tool_use","id":"ask","name":"AskUserQuestion",` +
			`"input":{"questions":[{"question":"Which provider?","options":[]}]}}]}`),
		record(`"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"ask","content":"The user answered"}]},` +
			`"toolUseResult":{"questions":[{"question":"Which provider?"}],"answers":{"Which provider?":"neither of them"}}`),
		answer("Neither."),
		record(`"type":"user","isMeta":true,"origin":{"kind":"channel","server":"plugin:telegram:telegram"},"message":{"content":` +
			`"<channel source=\"plugin:telegram:telegram\">\ndeploy the shop\n</channel>"}`),
		answer("Deployed."),
		record(`"type":"user","isMeta":true,"origin":{"kind":"peer","name":"checkout"},"message":{"content":"Another Claude session sent a ` +
			`message:\n<cross-session-message from=\"x\" name=\"checkout\">stop editing</cross-session-message>"}`),
		answer("I stop."),
		record(`"type":"user","isMeta":true,"scheduledTaskId":"f","turnOrigin":"scheduled","message":{"content":"look at the deploy"}`),
		answer("Green."),
	}
	s.put(t, head(tourID), lines...)
	text := func(html string) string {
		return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(html, " ")), " ")
	}
	var speakers []string
	page := s.get(t, "/sessions/"+tourID)
	for _, m := range regexp.MustCompile(`<span class="speaker">([^<]*)</span>`).FindAllStringSubmatch(page, -1) {
		speakers = append(speakers, m[1])
	}
	want := []string{"You", "Claude", "You", "Claude", "You via telegram", "Claude", "Message of session checkout", "Claude", "Scheduled task", "Claude"}
	kit.Same(t, "speakers", cmp.Diff(want, speakers))
	mustHave(t, text(page), "use one provider", "Which provider?", "neither of them")
	kit.Check(t, !strings.Contains(page, "no result"), "the advice is not the call's result")
	prompts := text(s.get(t, "/sessions/"+tourID+"/prompts"))
	mustHave(t, prompts, "plan the checkout", "neither of them", "deploy the shop", "via telegram")
	export := s.get(t, "/sessions/"+tourID+"/export?format=md")
	mustHave(t, export, "## You via telegram", "## Message of session checkout", "## Scheduled task", "neither of them", "use one provider")
	for query, found := range map[string]bool{
		"q=editing+kind:message": true, "q=editing+kind:prompt": false, "q=neither+kind:prompt": true, "q=deploy+kind:prompt": true,
		"q=provider+kind:result": true,
	} {
		kit.Equal(t, query+": found", strings.Contains(s.get(t, "/search?"+query), "/sessions/"+short(tourID)), found)
	}
}
