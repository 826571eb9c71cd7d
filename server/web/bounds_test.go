package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web"
)

// What the worst page may take.
const (
	mostAllocated = 64 << 20
	mostWritten   = 4 << 20
)

// meter asks a site for pages without a connection, and measures what each takes.
type meter struct {
	*site
	cookies []*http.Cookie
	worst   measured
}

type measured struct{ allocated, written uint64 }

func newMeter(t *testing.T) *meter {
	t.Helper()
	s := loggedIn(t)
	address := kit.Try(url.Parse(s.URL)).Must(t)
	return &meter{site: s, cookies: s.client.Jar.Cookies(address)}
}

// tally is an answer of which only the header is kept, and of the body its end.
type tally struct {
	*httptest.ResponseRecorder
	n   uint64
	end string
}

func (w *tally) Write(b []byte) (int, error) {
	w.n += uint64(len(b))
	if len(b) > 4<<10 {
		w.end = string(b[len(b)-4<<10:])
	} else {
		w.end += string(b)
	}
	return len(b), nil
}

// page asks for a page; windows is how many windows of lines may stand in it.
func (m *meter) page(t *testing.T, path string, windows uint64) *tally {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for _, c := range m.cookies {
		r.AddCookie(c)
	}
	w := &tally{ResponseRecorder: httptest.NewRecorder()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m.Config.Handler.ServeHTTP(w, r)
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	kit.Require(t, w.Code == http.StatusOK || w.Code == http.StatusSeeOther, "%s answers %d: %s", path, w.Code, w.end)
	kit.Check(t, took <= windows*mostAllocated && w.n <= windows*mostWritten, "%s allocates %d MiB and writes %d kB",
		path, took>>20, w.n>>10)
	m.worst = measured{max(m.worst.allocated, took/windows), max(m.worst.written, w.n/windows)}
	return w
}

// walk asks for all pages of a session, one after the other, in both ways in turn, and returns how many there are.
func (m *meter) walk(t *testing.T, id string) (pages uint64) {
	t.Helper()
	for from := 0; ; pages++ {
		w := m.page(t, sessionPath(id, "/tail", "after", strconv.Itoa(from-1)), 1)
		last, total := atoi(w.Header().Get("Ccship-Last")), atoi(w.Header().Get("Ccship-Total"))
		if pages%8 == 0 {
			m.page(t, sessionPath(id, "", "from", strconv.Itoa(from)), 1)
		}
		if last+1 >= total {
			return pages + 1
		}
		kit.Require(t, last >= from, "the page from line %d ends before it", from)
		from = last + 1
	}
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// marks are texts that grow when they are shown: repeated, they are the worst that a renderer meets.
var marks = []string{
	"'", "&", "<b>", "\x00", "\x7f", "\u202e", "\x1b[1;2;3;4;7;9;31;42mx", "\x1b[38;2;1;2;3mx\x1b[0m", "\r", "\b", "x\by\rz\n", "\n", "\r\n", "\ta",
	"*a*", "**a**", "_a_ ", "`a` ", "~~a~~", "a\n\n", "- ", "- a\n", "  - a\n", "1. a\n", "> ", "> a\n", "# a\n", "a\n===\n", "- [ ] a\n", "***\n",
	"[a](http://b.c) ", "![a](b) ", "[", "](", "http://a.b ", "<a@b.c> ", "www.a.b ", "&amp;", `\*`, "|", "|\n", "|a|b|\n|-|-|\n", "|-", "|\n|-|\n",
	"```go\n(\n```\n", "```\n", "~~~\na\n", "    a\n", "(", "{", "}", "\"", "x = 1;\n", "<a b='c'/>", "/*", "#", "--", "$(", "x", "é", "한",
	"<script>", "<!--", "<details>\n", "<command-name>", "</bash-stdout>", "@@ -1 +1 @@\n", "+\n-\n",
}

// nests open values that nothing closes.
var nests = []string{"[", `{"a":`, `[1,`, `[[],`, `{"a":{},"b":`}

// nested is valid JSON of about size bytes, as deep as a decoder takes it.
func nested(open string, size int) string {
	var b strings.Builder
	b.WriteByte('[')
	for sep := ""; b.Len() < size; sep = "," {
		deep := min(9900, max(1, (size-b.Len())/(len(open)+1)))
		shut := strings.NewReplacer("[[],", "]", "[1,", "]", "[", "]", `{"a":{},"b":`, "}", `{"a":`, "}").Replace(open)
		b.WriteString(sep + strings.Repeat(open, deep) + "0" + strings.Repeat(shut, deep))
	}
	return b.String() + "]"
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

var tools = []string{"Bash", "Edit", "MultiEdit", "Write", "NotebookEdit", "Read", "Grep", "TodoWrite", "Task", "ExitPlanMode", "WebFetch", "mcp__a__b", "Other"}

// repeated is pieces with commas between them, about size bytes.
func repeated(piece string, size int) string {
	return strings.TrimSuffix(strings.Repeat(piece+",", max(1, size/(len(piece)+1))), ",")
}

// worst is a line of about size bytes, whose shape and contents r chooses.
func worst(r *rand.Rand, id string, size int) string {
	text := quoted(strings.Repeat(marks[r.IntN(len(marks))], 1+size)[:size])
	if r.IntN(3) == 0 { // a table with a wide head and short rows
		head := strings.Repeat("|a", size/8)
		text = quoted(head + "\n" + strings.Repeat("|-", size/8) + "\n" + strings.Repeat("|\n", size/4))
	}
	value := nested(nests[r.IntN(len(nests))], size)
	tool := tools[r.IntN(len(tools))]
	block := []string{"{}", `{"type":""}`, `{"type":"text","text":"a"}`, `{"type":"thinking","thinking":"*a*"}`, `{"type":"tool_use","name":"Edit"}`,
		`{"type":"tool_use","name":"Bash","input":{"command":"'"}}`, `{"type":"image","source":{"data":"iVBORw0KGgo="}}`, `{"type":"tool_result","tool_use_id":"x","content":"a"}`, `""`, `"a"`,
		`{"type":"tool_result","content":[{"type":"tool_result","content":[{}]}]}`, `{"type":"image"}`, `{"type":"x","a":[[[[]]]]}`}[r.IntN(13)]
	input := []string{value, text, `{"file_path":"a.go","old_string":` + text + `,"new_string":"a"}`, `{"command":` + text + `,"description":` + text + `}`,
		`{"edits":[` + repeated(`{}`, size) + `]}`, `{"edits":[` + repeated(`{"old_string":"a b c","new_string":"a c b"}`, size) + `]}`,
		`{"todos":[` + repeated(`{}`, size) + `]}`, `{"file_path":"x.py","content":` + text + `}`, `{"prompt":` + text + `,"plan":` + text + `}`,
		`{` + repeated(`"a":"'"`, size) + `}`, `{"old_string":` + quoted(lines(r, size)) + `,"new_string":` + quoted(lines(r, size)) + `}`}[r.IntN(11)]
	outcome := []string{value, text, `{"stdout":` + text + `,"stderr":` + text + `}`, `{"structuredPatch":[` + repeated(`{}`, size) + `]}`,
		`{"structuredPatch":[{"lines":[` + repeated(`"-a"`, size/2) + "," + repeated(`"+b"`, size/2) + `]}]}`, `{"file":{"filePath":"a.rs","content":` + text + `}}`}[r.IntN(6)]
	call := fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, tool, input)
	result := fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%s}`, id, []string{text, `[` + repeated(block, size) + `]`, quoted(value)}[r.IntN(3)])
	message := func(kind, content string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"timestamp":"2026-11-20T08:00:00Z","message":{"role":%q,"model":"m","content":%s}`, kind, id, kind, content)
	}
	switch r.IntN(11) {
	case 0:
		return message("assistant", text) + "}"
	case 1:
		return message("user", text) + "}"
	case 2:
		return message("assistant", `[`+repeated(block, size)+`]`) + "}"
	case 3:
		return message("user", `[`+repeated(block, size)+`]`) + "}"
	case 4, 5:
		return message("assistant", `[`+call+`]`) + "}"
	case 6:
		return message("assistant", `[`+call+`,`+result+`]`) + "}"
	case 7:
		return message("user", `[`+result+`]`) + `,"toolUseResult":` + outcome + "}"
	case 8:
		return fmt.Sprintf(`{"type":%q,"subtype":"local_command","content":%s,"attachment":{"type":"queued_command","prompt":%s}}`,
			[]string{"system", "attachment", "queue-operation", "x"}[r.IntN(4)], text, text)
	case 9:
		return `{"type":"x",` + repeated(`"message":{}`, size) + `}`
	}
	return message("assistant", `[`+repeated(block, size/2)+`],`+repeated(`"content":[{},{}]`, size/2)) + "}"
}

// lines is a text of short lines that differ.
func lines(r *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "%d %d a\n", r.IntN(50), r.IntN(50))
	}
	return b.String()
}

// TestPagesAreBounded: no line, and no page full of lines, takes more memory than a page may, or is written as more than
// a page may be.
func TestPagesAreBounded(t *testing.T) {
	m := newMeter(t)
	r := rand.New(rand.NewPCG(27, 1))
	count := 10_000
	if testing.Short() {
		count = 1000
	}
	var all []string
	for i := range count {
		size := 20 << r.IntN(9)
		if i%500 == 0 {
			size = 400_000
		}
		all = append(all, worst(r, fmt.Sprint("i", i), size))
	}
	m.put(t, head("bounds"), all...)
	m.put(t, head("some"), all[:count/10]...)
	pages := m.walk(t, "bounds")
	for range 100 {
		m.page(t, sessionPath("bounds", "/entry/"+strconv.Itoa(r.IntN(count))), 1)
	}
	some := m.walk(t, "some")
	m.page(t, sessionPath("some", "/export", "format", "html"), 3*some) // all of it is cut to nothing
	m.page(t, sessionPath("some", "/export", "format", "md"), 3*some)
	t.Logf("%d pages; the worst allocates %d MiB and writes %d kB", pages, m.worst.allocated>>20, m.worst.written>>10)
}

// TestWorstLines: lines that were found to be the worst, each on every page that shows it.
func TestWorstLines(t *testing.T) {
	m := newMeter(t)
	answer := func(content string) string {
		return `{"type":"assistant","uuid":"a","timestamp":"2026-11-20T08:00:00Z","message":{"role":"assistant","content":` + content + `}}`
	}
	deep := strings.Repeat("[", 9900) + strings.Repeat("]", 9900)
	for name, line := range map[string]string{
		"arrays":     answer(`[{"type":"tool_use","id":"a","name":"Other","input":[` + repeated(deep, 320_000) + `]}]`),
		"raw arrays": `{"type":"x","a":[` + repeated(deep, 320_000) + `]}`,
		"blocks":     answer(`[` + repeated(`{"type":"text","text":"a"}`, 8<<20) + `]`),
		"many bytes": answer(`[` + repeated(`{}`, 29_700_000) + `]`),
		"long text":  answer(quoted(strings.Repeat("'<*a* `b` ", 900_000))),
	} {
		m.put(t, head(name), line)
		for _, path := range []string{sessionPath(name, ""), sessionPath(name, "", "mode", "everything"), sessionPath(name, "/tail", "after", "-1"), sessionPath(name, "/entry/0"),
			sessionPath(name, "/L/0"), sessionPath(name, "/export", "format", "md"), sessionPath(name, "/export", "format", "html"), sessionPath(name, "/prompts"),
			"/", "/now"} {
			before := m.worst
			m.worst = measured{}
			m.page(t, path, 1)
			t.Logf("%s %s: %d MiB, %d kB", name, path, m.worst.allocated>>20, m.worst.written>>10)
			m.worst = before
		}
	}
}

// TestHugeLineInPieces: what reads all of a line of 30 MB, to send it or to compare it, holds pieces of it; and a share
// link, whose readers see only what could be masked as a whole, shows nothing of it.
func TestHugeLineInPieces(t *testing.T) {
	s := newSharing(t)
	address := kit.Try(url.Parse(s.URL)).Must(t)
	most := 0 // bytes of a line that a page got at once
	v := kit.Try(web.New(&watched{Store: s.store, read: func(l server.Line) { most = max(most, len(l.Raw)) }}, s.access)).Must(t)
	v.Log, v.Hub, v.Now = s.viewer.Log, s.viewer.Hub, s.viewer.Now
	s.Config.Handler = v.Handler()
	m := &meter{site: s.site, cookies: s.client.Jar.Cookies(address)}
	huge := func(end string) string {
		return `{"type":"x","message":{"role":"user","content":[` + repeated(`{"type":"text","text":"needle"}`, 30_000_000) + `]},"end":"` + end + `"}`
	}
	h := head("mine")
	for i, end := range []string{"a", "b", "b"} {
		h.Generation, h.RewoundTo = int64(i+1), 4
		s.put(t, h, huge(end), spoken("user", "behind it"))
	}
	compare := func(a, b string) string { return sessionPath("mine", "/compare", "a", a, "b", b, "records", "1") }
	bytes := m.page(t, sessionPath("mine", "/bytes/4"), 8) // it is written whole
	want := huge("b")
	kit.Check(t, bytes.n == uint64(len(want)) && strings.HasSuffix(want, bytes.end) && bytes.Header().Get("Content-Length") != "",
		"of %d bytes %d are sent, with header %v", len(want), bytes.n, bytes.Header())
	shared := strings.TrimPrefix(s.visit(t, s.link).path, s.base)
	for _, path := range []string{compare("1", "2"), sessionPath("mine", "/compare", "a", "1", "b", "2"), shared,
		strings.Replace(shared, "?", "/entry/4?", 1), strings.Replace(shared, "?", "/prompts?", 1)} {
		m.page(t, path, 4) // a comparison reads two of them
	}
	mustHave(t, s.get(t, compare("1", "2")), `class="del"`, `class="add"`)
	mustHave(t, s.get(t, compare("2", "3")), "The two are identical.")
	a := s.visit(t, s.link)
	kit.Check(t, a.code == http.StatusOK && strings.Contains(a.body, "behind it") && !strings.Contains(a.body, "needle"),
		"the link answers %d with %d bytes", a.code, len(a.body))
	kit.Check(t, most <= server.LongHead, "%d bytes of a line are held at once", most)
}

// TestExportSlowReaders: readers of exports who take none of what they asked for hold up no pages.
func TestExportSlowReaders(t *testing.T) {
	s := loggedIn(t)
	var lines []string
	for range 16 {
		lines = append(lines, fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%q}}`, strings.Repeat("wombat ", 200_000)))
	}
	s.put(t, head("slow"), lines...)
	here := kit.Try(url.Parse(s.URL)).Must(t)
	cookie := s.client.Jar.Cookies(here)[0]
	for i := range 16 {
		format := []string{"jsonl", "html", "json", "md"}[i%4]
		s.stall(t, sessionPath("slow", "/export", "format", format), "Cookie: "+cookie.String()+"\r\n")
	}
	s.wants(t, http.StatusOK, "GET", sessionPath("slow", "/entry/3"), nil)
	whole := s.get(t, sessionPath("slow", "/export", "format", "jsonl"))
	kit.Equal(t, "the export has bytes", whole, strings.Join(lines, "\n")+"\n")
}

// TestFollowUnshared: what is no longer shared is not announced any more.
func TestFollowUnshared(t *testing.T) {
	s := newSite(t, nil)
	ana := s.addUser(t, "ana", server.Member)
	share := server.Share{Owner: s.owner.ID, With: ana.ID, ProjectHash: "sha-of-shop", Project: "shop"}
	kit.Must(t, s.store.AddShare(t.Context(), share))
	s.login(t, s.addKey(t, ana, "tower"))
	heard := s.listen(t, "/events")
	s.put(t, head("shared"), `{"type":"user","message":{"role":"user","content":"one"}}`)
	got := <-heard
	kit.Require(t, strings.Contains(got, `"shared"`), "a member hears of %s", got)
	kit.Must(t, s.store.RemoveShare(t.Context(), share))
	s.put(t, head("later"), `{"type":"user","message":{"role":"user","content":"two"}}`)
	s.putAs(t, ana, head("hers"), `{"type":"user","message":{"role":"user","content":"three"}}`)
	kit.Has(t, "after the unshare a member hears", <-heard, `"hers"`)
}

// TestPageRate: pages count towards a user's requests a minute; another user's do not.
func TestPageRate(t *testing.T) {
	s := newSite(t, func(v *web.Viewer) { v.Rates = limit.NewRates(3) })
	s.login(t, s.key) // is led to the first page
	for range 2 {
		s.get(t, "/usage")
	}
	a := s.do(t, "GET", "/usage", nil, nil)
	for n := 0; a.code == http.StatusOK && n < 1000; n++ { // on a slow machine time makes up for some
		a = s.do(t, "GET", "/usage", nil, nil)
	}
	kit.Check(t, a.code == http.StatusTooManyRequests && a.header.Get("Retry-After") != "", "one more: %d %v", a.code, a.header)
	ana := s.addUser(t, "ana", server.Member)
	s.client = newClient(t)
	kit.Equal(t, "another user", s.login(t, s.addKey(t, ana, "tower")).code, http.StatusOK)
}

// TestShareRate: what visitors of a user's links ask for counts together, but not towards the user's own requests.
func TestShareRate(t *testing.T) {
	s := &sharing{site: newSite(t, func(v *web.Viewer) { v.Rates = limit.NewRates(12) }), visitor: newClient(t)}
	s.login(t, s.key)
	s.put(t, head("mine"), spoken("user", "hello"))
	var links []string
	for range 2 {
		links = append(links, s.share(t, "mine"))
	}
	refused := map[string]bool{}
	for n := 0; len(refused) < len(links) && n < 1000; n++ { // a visit takes much less than is given back in its time
		link := links[n%len(links)]
		a := s.visit(t, link)
		if a.code == http.StatusTooManyRequests && a.header.Get("Retry-After") != "" {
			refused[link] = true
		} else if a.code != http.StatusOK {
			t.Errorf("a visit answers %d", a.code)
		}
	}
	kit.Check(t, len(refused) >= len(links), "of the links %q only %v are refused", links, refused)
	s.get(t, "/usage")
}

// TestSlowFormOutlivesLogin: a form that is still being read when its login ends changes nothing.
func TestSlowFormOutlivesLogin(t *testing.T) {
	s := newSite(t, nil)
	s.login(t, s.key)
	in, out := io.Pipe()
	req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/account/keys", in)).Must(t)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Expect", "100-continue") // so that the body is sent once the server reads it
	cookies := s.client.Jar.Cookies(req.URL)
	status := make(chan int, 1)
	go func() {
		res, err := s.client.Do(req)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		res.Body.Close()
		status <- res.StatusCode
	}()
	kit.Try(io.WriteString(out, "name=")).Must(t)
	for _, c := range cookies {
		kit.Must(t, s.access.Logout(t.Context(), c.Value))
	}
	kit.Try(io.WriteString(out, "late")).Must(t)
	kit.Must(t, out.Close())
	kit.Equal(t, "a key made after the logout", <-status, http.StatusUnauthorized)
}
