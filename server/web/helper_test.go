package web_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/server/web"
)

var update = flag.Bool("update", false, "write the golden pages anew")

// site is a viewer on a real store, with everything derived behind it.
type site struct {
	*httptest.Server
	store  *sqlite.Store
	access *auth.Access
	viewer *web.Viewer
	client *http.Client
	owner  server.User
	key    string // of the owner
	base   string
}

// today is the time of the pages, and when lines are received: some days after the conversations of testdata.
var today = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// newSite serves a viewer after change has set its fields.
func newSite(t testing.TB, change func(*web.Viewer)) *site {
	t.Helper()
	st := kit.Try(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	s := &site{store: st}
	s.owner = s.addUser(t, "kim", server.Owner)
	s.key = s.addKey(t, s.owner, "laptop")
	log := slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s.access = auth.New(st, log)
	s.viewer = kit.Try(web.New(st, s.access)).Must(t)
	hub := server.NewHub(st)
	s.viewer.Log, s.viewer.Hub, s.viewer.Now = log, hub, func() time.Time { return today }
	if change != nil {
		change(s.viewer)
	}
	s.base = s.viewer.Base
	ctx, stop := context.WithCancel(context.Background())
	deriver := &derive.Deriver{Store: st}
	ended := make(chan error, 2)
	go func() { ended <- hub.Run(ctx) }()
	go func() { ended <- deriver.Run(ctx) }()
	s.Server = httptest.NewServer(http.StripPrefix(s.base, s.viewer.Handler()))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		stop()
		for range 2 {
			kit.Should(t, <-ended)
		}
		kit.Should(t, st.Close())
	})
	s.client = newClient(t)
	return s
}

// loggedIn is a site whose reader is the owner.
func loggedIn(t testing.TB) *site {
	t.Helper()
	s := newSite(t, nil)
	a := s.login(t, s.key)
	kit.Require(t, a.code == http.StatusOK, "login: %d", a.code)
	return s
}

func newClient(t testing.TB) *http.Client {
	t.Helper()
	jar := kit.Try(cookiejar.New(nil)).Must(t)
	return &http.Client{Jar: jar}
}

// testLog shows what the server logs in the test's output.
type testLog struct{ t testing.TB }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("log: %s", b)
	return len(b), nil
}

func (s *site) addUser(t testing.TB, name string, role server.Role) server.User {
	t.Helper()
	users := kit.Try(s.store.Users(t.Context())).Must(t)
	for _, u := range users {
		if u.Name == name {
			return u
		}
	}
	return kit.Try(s.store.AddUser(t.Context(), name, role, server.By{At: time.Now()})).Must(t)
}

func (s *site) addKey(t testing.TB, u server.User, name string) string {
	t.Helper()
	key, hash := auth.NewKey()
	kit.Must(t, s.store.AddKey(t.Context(), server.Key{User: u, Name: name, Hash: hash, Created: time.Now()}))
	return key
}

const (
	machine = "9c1f2ab047d3"
	tourID  = "5d1c0e7a-3b52-4c0e-9a53-1f0c7b6a2e01"
	agentID = tourID + "/agent-a7f3c21b09d84e51"
)

// head is what a request says of a session of project shop.
func head(session string) server.Head {
	return server.Head{SessionID: session, ProjectHash: "sha-of-shop", Machine: machine, Host: "kims-laptop", Epoch: "e1",
		Path: "-home-kim-shop/" + session + ".jsonl", Cwd: "/home/kim/shop", Project: "shop", EOFNewline: true}
}

// put stores lines of a generation and waits until they are derived.
func (s *site) put(t testing.TB, h server.Head, lines ...string) {
	t.Helper()
	s.putAs(t, s.owner, h, lines...)
}

func (s *site) putAs(t testing.TB, owner server.User, h server.Head, lines ...string) {
	t.Helper()
	b := &server.Batch{Owner: owner.ID, Received: today, Head: h}
	for i, l := range lines {
		kind := server.Object
		if !strings.HasPrefix(l, "{") {
			kind = server.Opaque
		}
		b.Lines = append(b.Lines, server.Line{Index: h.RewoundTo + int64(i), Kind: kind, Raw: []byte(l)})
	}
	b.Head.EndLine = h.RewoundTo + int64(len(lines))
	kit.Must(t, s.store.Put(context.Background(), b))
	s.settle(t, owner, h, b.Head.EndLine)
}

// settle waits until everything of a stream is derived.
func (s *site) settle(t testing.TB, owner server.User, h server.Head, lines int64) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		snap := kit.Try(s.store.View(t.Context(), server.Scope{All: true}, server.Ref{SessionID: h.SessionID, Owner: owner.ID, Machine: &h.Machine})).Must(t)
		id, total := snap.Session().ID, snap.Session().Lines
		kit.Must(t, snap.Close())
		facts := kit.Try(s.store.SummaryOf(t.Context(), id)).Must(t)
		if total != lines || facts.Lines == total {
			return
		}
	}
}

// tour stores the conversation of testdata with its agent, and a rewrite that takes a prompt out.
func (s *site) tour(t testing.TB) {
	t.Helper()
	lines := fixture(t, "tour.jsonl")
	s.put(t, head(tourID), lines...)
	h := head(tourID)
	h.Generation, h.RewoundTo = 1, 50
	s.put(t, h, lines[51:]...)
	a := head(agentID)
	a.Parent = tourID
	s.put(t, a, fixture(t, "tour-agent.jsonl")...)
}

func fixture(t testing.TB, name string) []string {
	t.Helper()
	b := kit.Try(os.ReadFile(filepath.Join("testdata", name))).Must(t)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// answer is what came back.
type answer struct {
	code   int
	body   string
	header http.Header
	path   string
}

func (s *site) do(t testing.TB, method, path string, form url.Values, header map[string]string) answer {
	t.Helper()
	req := kit.Try(http.NewRequestWithContext(t.Context(), method, s.URL+s.base+path, strings.NewReader(form.Encode()))).Must(t)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	if h := header["Host"]; h != "" {
		req.Host = h
	}
	res := kit.Try(s.client.Do(req)).Must(t)
	defer res.Body.Close()
	b := kit.Try(io.ReadAll(res.Body)).Must(t)
	return answer{res.StatusCode, string(b), res.Header, res.Request.URL.RequestURI()}
}

// get fetches a page that must be there.
func (s *site) get(t testing.TB, path string) string {
	t.Helper()
	a := s.do(t, "GET", path, nil, nil)
	kit.Require(t, a.code == http.StatusOK, "%s answers %d: %s", path, a.code, a.body)
	return a.body
}

// wants sends a request that must be answered with a status.
func (s *site) wants(t testing.TB, status int, method, path string, form url.Values) {
	t.Helper()
	kit.Equal(t, fmt.Sprintf("%s %s %v answers", method, path, form), s.do(t, method, path, form, nil).code, status)
}

// share makes a link to a session and returns its path.
func (s *site) share(t testing.TB, id string) string {
	t.Helper()
	form := s.do(t, "POST", sessionPath(id, "/share"), url.Values{"expires": {"7d"}}, nil)
	link := regexp.MustCompile(`>http://[^"/<]+(/s/[A-Z2-7]{26,})<`).FindStringSubmatch(form.body)
	kit.Require(t, link != nil, "%d without a link: %s", form.code, form.body)
	return link[1]
}

// stall asks for a page over a connection of its own, and reads nothing but the status, which must be 200.
func (s *site) stall(t testing.TB, path, header string) {
	t.Helper()
	conn := kit.Try(net.Dial("tcp", s.Listener.Addr().String())).Must(t)
	t.Cleanup(func() { _ = conn.Close() })
	kit.Must(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	kit.Try(fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, s.Listener.Addr(), header)).Must(t)
	line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
	kit.Require(t, err == nil && strings.Contains(line, "200"), "%s: %q %v", path, line, err)
}

// as makes the reader a user with a browser of its own.
func (s *site) as(t testing.TB, u server.User) {
	t.Helper()
	s.client = newClient(t)
	s.login(t, s.addKey(t, u, "key of "+u.Name))
}

func (s *site) login(t testing.TB, key string) answer {
	t.Helper()
	return s.do(t, "POST", "/login", url.Values{"key": {key}}, nil)
}

// short is a session's id in addresses where nobody else's begins so.
func short(id string) string { return id[:8] }

// sessionPath is the address of a session's page, or of something below it.
func sessionPath(id, below string, q ...string) string {
	v := url.Values{"machine": {machine}}
	for i := 0; i+1 < len(q); i += 2 {
		v.Set(q[i], q[i+1])
	}
	return "/sessions/" + url.PathEscape(id) + below + "?" + v.Encode()
}

func mustHave(t testing.TB, page string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		kit.Has(t, "the page lacks", page, w)
	}
}

func mustLack(t testing.TB, page string, those ...string) {
	t.Helper()
	for _, w := range those {
		kit.Check(t, !strings.Contains(page, w), "the page has %q:\n%s", w, page)
	}
}

// nodes calls visit with every element of a page.
func nodes(t testing.TB, page string, visit func(n *html.Node)) {
	t.Helper()
	doc := kit.Try(html.Parse(strings.NewReader(page))).Must(t)
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			visit(n)
		}
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// words is all text below a node.
func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
