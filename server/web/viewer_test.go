package web_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/web"
)

type site struct {
	*httptest.Server
	store  *store.SQLite
	key    string
	client *http.Client
}

func newSite(t *testing.T, open bool) *site {
	t.Helper()
	st, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "server.db"))
	if err != nil {
		t.Fatal(err)
	}
	key, hash := server.NewKey()
	if err := st.AddKey(t.Context(), "k", hash, time.Now()); err != nil {
		t.Fatal(err)
	}
	v, err := web.New(st, server.NewKeys(st, slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	v.Open = open
	s := httptest.NewServer(v.Handler())
	t.Cleanup(func() {
		s.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &site{s, st, key, &http.Client{Jar: jar}}
}

func (s *site) put(t *testing.T, session string, generation, rewound int64, lines ...string) {
	t.Helper()
	b := &server.Batch{Received: time.Now(), Head: server.Head{SessionID: session, Machine: "m", Epoch: "e", Project: "shop",
		Generation: generation, RewoundTo: rewound, EndLine: rewound + int64(len(lines)), EOFNewline: true}}
	for i, l := range lines {
		b.Lines = append(b.Lines, server.Line{Index: rewound + int64(i), Raw: []byte(l)})
	}
	if err := s.store.Put(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func (s *site) do(t *testing.T, method, path string, form url.Values, header map[string]string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	if h := header["Host"]; h != "" {
		req.Host = h
	}
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

func mustHave(t *testing.T, page string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(page, w) {
			t.Errorf("the page lacks %q:\n%s", w, page)
		}
	}
}

func TestOpenPages(t *testing.T) {
	s := newSite(t, true)
	_, page, _ := s.do(t, "GET", "/", nil, nil)
	mustHave(t, page, "No session has arrived yet")
	s.put(t, "1c0e/agent-7", 0, 0,
		`{"type":"user","isMeta":true,"message":{"role":"user","content":"caveat"}}`,
		`{"type":"user","timestamp":"2026-11-20T10:00:00Z","message":{"role":"user","content":"Fix the <script>alert(1)</script> bug"}}`,
		`{"type":"assistant","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hmm"},{"type":"text","text":"Done."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"file.go"}]}]}}`,
		`{"type":"future","timestamp":"not a time","message":17}`, `not json`, ``)
	s.put(t, "1c0e/agent-7", 1, 1, `{"type":"user","message":{"role":"user","content":"Second thought"}}`)
	code, page, h := s.do(t, "GET", "/", nil, nil)
	if code != 200 || strings.Contains(page, "<script>") {
		t.Errorf("%d %s", code, page)
	}
	mustHave(t, page, "Second thought", `href="/sessions/1c0e%2Fagent-7?machine=m"`, "shop", "2 lines")
	if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("CSP %q", csp)
	}
	_, page, _ = s.do(t, "GET", "/sessions/1c0e%2Fagent-7?machine=m&generation=0", nil, nil)
	mustHave(t, page, "Fix the &lt;script&gt;", "Done.", "tool: Bash", "file.go", "thinking", "not json", "generation=1", ">future<")
	for path, want := range map[string]int{"/sessions/none": 404, "/nothing": 404, "/style.css": 200, "/?after=x": 200, "/login": 404} {
		if code, _, _ := s.do(t, "GET", path, nil, nil); code != want {
			t.Errorf("%s: %d", path, code)
		}
	}
	for host, want := range map[string]int{"evil.example": 403, "127.0.0.1.evil.example:80": 403, "localhost:5000": 200, "[::1]:5000": 200} {
		if code, _, _ := s.do(t, "GET", "/", nil, map[string]string{"Host": host}); code != want {
			t.Errorf("host %s: %d", host, code)
		}
	}
}

func TestPaging(t *testing.T) {
	s := newSite(t, true)
	var lines []string
	for range 450 {
		lines = append(lines, `{"type":"user","message":{"role":"user","content":"x"}}`)
	}
	s.put(t, "long", 0, 0, lines...)
	_, page, _ := s.do(t, "GET", "/sessions/long", nil, nil)
	mustHave(t, page, `id="L199"`, "from=200")
	_, page, _ = s.do(t, "GET", "/sessions/long?machine=m&from=400", nil, nil)
	mustHave(t, page, `id="L449"`, "from=200")
	if strings.Contains(page, ">Later<") {
		t.Error("there is something behind the end")
	}
	for i := range 60 {
		s.put(t, strings.Repeat("s", i+1), 0, 0, `{}`)
	}
	_, page, _ = s.do(t, "GET", "/", nil, nil)
	_, rest, found := strings.Cut(page, `href="/?after=`)
	if !found {
		t.Fatal("no second page")
	}
	after, _, _ := strings.Cut(rest, `"`)
	_, page, _ = s.do(t, "GET", "/?after="+after, nil, nil)
	mustHave(t, page, ">Newest<", ">s</a>")
}

func TestLogin(t *testing.T) {
	s := newSite(t, false)
	s.put(t, "secret-session", 0, 0, `{}`)
	code, page, _ := s.do(t, "GET", "/sessions/secret-session?machine=m", nil, nil)
	if code != 401 || strings.Contains(page, "lines") {
		t.Errorf("without login: %d %s", code, page)
	}
	mustHave(t, page, `name="key"`, `value="/sessions/secret-session?machine=m"`)
	code, page, _ = s.do(t, "POST", "/login", url.Values{"key": {"wrong"}}, nil)
	if code != 401 {
		t.Errorf("wrong key: %d", code)
	}
	mustHave(t, page, "not a valid key")
	code, _, _ = s.do(t, "POST", "/login", url.Values{"key": {s.key}}, map[string]string{"Sec-Fetch-Site": "cross-site"})
	if code != 403 {
		t.Errorf("login from another site: %d", code)
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, _, h := s.do(t, "POST", "/login", url.Values{"key": {s.key}, "next": {"//evil.example/"}}, nil)
	if to := h.Get("Location"); to != "/" {
		t.Errorf("a login leads to %q", to)
	}
	c := h.Get("Set-Cookie")
	if !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Strict") || strings.Contains(c, s.key) {
		t.Errorf("cookie %q", c)
	}
	if code, page, _ = s.do(t, "GET", "/", nil, nil); code != 200 {
		t.Errorf("after login: %d", code)
	}
	mustHave(t, page, "secret-session", "Log out")
	if err := s.store.RevokeKey(t.Context(), "k", time.Now()); err != nil {
		t.Fatal(err)
	}
	if code, _, _ = s.do(t, "GET", "/", nil, nil); code != 401 {
		t.Errorf("with a revoked key: %d", code)
	}
}

func TestLogout(t *testing.T) {
	s := newSite(t, false)
	if code, _, _ := s.do(t, "POST", "/login", url.Values{"key": {" " + s.key + "\n"}}, nil); code != 200 {
		t.Fatalf("login: %d", code)
	}
	if code, _, _ := s.do(t, "POST", "/logout", nil, nil); code != 200 {
		t.Errorf("logout: %d", code)
	}
	if code, _, _ := s.do(t, "GET", "/", nil, nil); code != 401 {
		t.Errorf("after logout: %d", code)
	}
}
