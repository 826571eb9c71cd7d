package web_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/planted"
)

// sharing is a site of a logged-in reader with two sessions, each with an agent, of which the first is shared.
type sharing struct {
	*site
	visitor *http.Client // not logged in
	link    string       // path of the link
	secrets []string     // in the transcripts; no page of the link has them
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	s := &sharing{site: loggedIn(t), visitor: newClient(t)}
	for i := range 2 {
		secret, _ := planted.Plant(rand.New(rand.NewPCG(uint64(i), 3)), planted.Kinds()["github"])
		s.secrets = append(s.secrets, secret)
		id := []string{"mine", "other"}[i]
		h, a := head(id), head(id+"/agent-1")
		a.Parent = id
		s.put(t, h, spoken("user", "prompt of "+id+" with "+secret), spoken("assistant", "answer of "+id),
			`{"type":"user","uuid":"i","timestamp":"2026-11-20T08:00:00Z","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]}}`,
			spoken("user", strings.Repeat("long ", 8000)+"end of "+id))
		s.put(t, a, spoken("user", "task of "+id+" with "+secret), spoken("assistant", "report of "+id))
	}
	s.link = s.share(t, "mine")
	return s
}

func spoken(kind, text string) string {
	return fmt.Sprintf(`{"type":%q,"uuid":"u-%s-%d","timestamp":"2026-11-20T08:00:00Z","message":{"role":%q,"content":%q}}`, kind, kind, len(text), kind, text)
}

// visit fetches a page without a login.
func (s *sharing) visit(t *testing.T, path string) answer {
	t.Helper()
	mine := s.client
	s.client = s.visitor
	defer func() { s.client = mine }()
	return s.do(t, "GET", path, nil, nil)
}

// shows wants a page of the link, without any secret, and returns it.
func (s *sharing) shows(t *testing.T, path string, wants ...string) string {
	t.Helper()
	a := s.visit(t, path)
	kit.Equal(t, path+" answers", a.code, http.StatusOK)
	mustHave(t, a.body, wants...)
	mustLack(t, a.body, append(s.secrets, "kims-laptop", "/home/kim", "of other")...)
	for name, want := range map[string]string{
		"X-Robots-Tag": "noindex, nofollow, noarchive", "Referrer-Policy": "no-referrer", "Cache-Control": "private, no-store",
	} {
		kit.Equal(t, fmt.Sprintf("%s has %s", path, name), a.header.Get(name), want)
	}
	kit.Check(t, a.header.Get("Content-Security-Policy") != "", "%s has no policy", path)
	return a.body
}

// TestSharedSession: who has a link reads the session and its agents, without secrets, and every address on its pages
// leads to a page of the link.
func TestSharedSession(t *testing.T) {
	s := newSharing(t)
	first := s.visit(t, s.link)
	main := first.path
	page := s.shows(t, main, "prompt of mine", "answer of mine", "read-only", "shared by", "noindex")
	mustLack(t, page, ">raw<", "☆ Star", "claude --resume", "Export", "Link a document")
	at := func(below string) string { return strings.Replace(main, "?", below+"?", 1) }
	s.shows(t, at("/tail")+"&after=-1", "prompt of mine")
	s.shows(t, at("/prompts")+"&bare=1", "prompt of mine")
	s.shows(t, at("/prompts"), "prompt of mine")
	s.shows(t, at("/L/1"), "answer of mine")
	s.shows(t, at("/entry/3"), "end of mine")
	image := s.visit(t, at("/image/2/0"))
	kit.Check(t, image.code == http.StatusOK && image.header.Get("Content-Type") == "image/png" &&
		image.header.Get("Cache-Control") == "private, no-store", "image: %d %v", image.code, image.header)
	agent := s.link + "/sessions/mine%2Fagent-1"
	s.shows(t, agent, "task of mine", "report of mine", "Session of this agent")
	s.shows(t, agent+"/tail?after=-1&inside=1", "task of mine")

	followed := 0
	for _, p := range []string{main, agent} {
		nodes(t, s.visit(t, p).body, func(n *html.Node) {
			for _, name := range []string{"href", "src", "data-src", "data-tail"} {
				to := attr(n, name)
				if to == "" || strings.HasPrefix(to, "/assets/") || strings.HasPrefix(to, "#") || n.Data == "a" && attr(n, "class") == "brand" {
					continue
				}
				if followed++; !strings.HasPrefix(to, s.link) {
					t.Errorf("%s has an address beyond the link: %s", p, to)
				} else if name == "data-tail" {
					to += "&after=0"
				}
				kit.Equal(t, fmt.Sprintf("%s leads to %s", p, to), s.visit(t, to).code, http.StatusOK)
			}
		})
	}
	kit.Check(t, followed >= 8, "only %d addresses were followed", followed)
}

// TestSharedNothingElse: nothing but the session and its agents is there with a link, whatever one asks for.
func TestSharedNothingElse(t *testing.T) {
	s := newSharing(t)
	for _, id := range []string{"other", "other%2Fagent-1", "none", "mine%2Fagent-2"} {
		for _, below := range []string{"", "/tail?after=-1", "/prompts", "/prompts?bare=1", "/L/0", "/entry/0", "/entry/3", "/image/2/0"} {
			path := s.link + "/sessions/" + id + below
			for _, also := range []string{"", "owner=1", "owner=1&machine=" + machine, "machine="} {
				to := path
				if also != "" && strings.Contains(path, "?") {
					to += "&" + also
				} else if also != "" {
					to += "?" + also
				}
				a := s.visit(t, to)
				kit.Check(t, a.code == http.StatusNotFound && !strings.Contains(a.body, "of other"), "%s answers %d", to, a.code)
			}
		}
	}
	for _, path := range []string{"/search?q=prompt", "/usage", "/", "/events", "/beside", "/now", "/projects", "/account", "/share-links"} {
		a := s.visit(t, s.link+path)
		kit.Check(t, path == "/" || a.code == http.StatusNotFound, "%s below the link answers %d", path, a.code)
		kit.Equal(t, path+" of who only has a link", s.visit(t, path).code, http.StatusUnauthorized)
	}
	for _, below := range []string{"", "/raw", "/export?format=jsonl", "/context", "/compare", "/bytes/0", "/document", "/file?name=x", "/artifacts", "/share"} {
		a := s.visit(t, s.link+"/sessions/mine"+below)
		kit.Check(t, below == "" || a.code == http.StatusNotFound, "%s answers %d", below, a.code)
		a = s.visit(t, sessionPath("mine", below))
		kit.Check(t, a.code == http.StatusUnauthorized || a.code == http.StatusNotFound,
			"the session's own %s answers %d to who only has a link", below, a.code)
	}
	a := s.do(t, "POST", s.link+"/sessions/mine/mark", url.Values{"star": {"1"}}, nil)
	kit.Check(t, a.code >= 400, "a mark through a link: %d", a.code)
}

// TestSharedVersions: a link shows the newest state of its session and of its agents, whatever generation or epoch one
// asks for: what a rewind took out, or what an earlier epoch has, is not the link's.
func TestSharedVersions(t *testing.T) {
	s := newSharing(t)
	for _, h := range []server.Head{head("mine"), head("mine/agent-1")} {
		if h.SessionID != "mine" {
			h.Parent = "mine"
		}
		h.Generation = 1
		s.put(t, h, spoken("user", "taken back"), spoken("assistant", "taken back, too"))
		h.Generation = 2
		s.put(t, h, spoken("user", "of the old epoch"))
		h.Generation, h.Epoch = 0, "e2"
		s.put(t, h, spoken("user", "newest"), spoken("assistant", "as it stands"))
	}
	past := []string{"prompt of mine", "answer of mine", "task of mine", "report of mine", "taken back", "of the old epoch"}
	mustHave(t, s.get(t, sessionPath("mine", "", "epoch", "e1", "generation", "1")), "taken back") // its owner sees it
	for _, id := range []string{"mine", "mine%2Fagent-1"} {
		for _, version := range []string{"", "generation=0", "generation=1", "generation=2", "epoch=e1", "epoch=e1&generation=0",
			"epoch=e1&generation=1", "epoch=e2&generation=1", "generation=1&generation=0", "epoch=none"} {
			at := s.link + "/sessions/" + id
			mustHave(t, s.shows(t, at+"?"+version), "newest", "as it stands")
			for _, below := range []string{"/tail?after=-1", "/tail?after=-1&inside=1", "/prompts?after=-1", "/prompts?bare=1", "/entry/0?x=1",
				"/entry/1?x=1", "/L/0?x=1"} {
				mustLack(t, s.shows(t, at+below+"&"+version), past...)
			}
			mustLack(t, s.shows(t, at+"?"+version), past...)
			for _, below := range []string{"/entry/2", "/entry/3", "/L/3", "/image/2/0"} { // lines that only the past has
				kit.Equal(t, fmt.Sprintf("%s%s?%s answers", at, below, version), s.visit(t, at+below+"?"+version).code,
					http.StatusNotFound)
			}
		}
	}
}

// TestSharedEnds: a link that was ended, is over or was never made shows nothing.
func TestSharedEnds(t *testing.T) {
	s := newSharing(t)
	gone := func(path, why string) {
		t.Helper()
		a := s.visit(t, path)
		kit.Check(t, a.code == http.StatusNotFound && !strings.Contains(a.body, "of mine"), "%s: %d", why, a.code)
	}
	gone("/s/", "no secret")
	gone("/s/AAAAAAAAAAAAAAAAAAAAAAAAAA", "a guess")
	gone(s.link[:len(s.link)-1], "a part of the secret")
	gone(strings.ToLower(s.link), "another spelling")

	list := s.get(t, sessionPath("mine", "/share"))
	id := regexp.MustCompile(`name="id" value="(\d+)"`).FindStringSubmatch(list)
	kit.Require(t, id != nil && !strings.Contains(list, strings.TrimPrefix(s.link, "/s/")), "the list of links: %s", list)
	mustHave(t, s.get(t, "/share-links"), `value="`+id[1]+`"`, "prompt of mine")

	other := s.addUser(t, "robin", server.Member)
	owner := s.client
	s.as(t, other)
	s.wants(t, http.StatusNotFound, "POST", "/share-links/end", url.Values{"id": {id[1]}})
	s.wants(t, http.StatusNotFound, "POST", sessionPath("mine", "/share"), url.Values{"expires": {"7d"}})
	s.client = owner
	s.shows(t, s.visit(t, s.link).path, "prompt of mine")
	for _, expires := range []string{"", "2d", "9999d"} {
		s.wants(t, http.StatusBadRequest, "POST", sessionPath("mine", "/share"), url.Values{"expires": {expires}})
	}
	s.do(t, "POST", "/share-links/end", url.Values{"id": {id[1]}, "next": {"/share-links"}}, nil)
	gone(s.link, "it was ended")
	mustHave(t, s.get(t, sessionPath("mine", "/share")), "None.")
}

// pictured is a line with an image of so many bytes.
func pictured(size int) string {
	png := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, size)...))
	return fmt.Sprintf(`{"type":"user","uuid":"i","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}}`, png)
}

// stuck is an answer of which nobody takes more than its beginning until let is closed.
type stuck struct {
	*httptest.ResponseRecorder
	began chan struct{}
	let   <-chan struct{}
	once  sync.Once
}

func (w *stuck) Write(b []byte) (int, error) {
	if len(b) > 64<<10 {
		w.once.Do(func() { close(w.began) })
		<-w.let
	}
	return w.ResponseRecorder.Write(b)
}

// TestSlowReadersHoldLittle: answers that nobody takes are in memory up to a bound, of one user and of the visitors of
// one user's links. More are refused; others are shown what they ask for.
func TestSlowReadersHoldLittle(t *testing.T) {
	s := newSharing(t)
	ana := s.addUser(t, "ana", server.Member)
	s.putAs(t, ana, head("slow"), pictured(6<<20))
	s.as(t, ana)
	link := s.share(t, "slow")
	address := kit.Try(url.Parse(s.URL)).Must(t)
	cookies := s.client.Jar.Cookies(address)
	let := make(chan struct{})
	var readers sync.WaitGroup
	defer readers.Wait()
	defer close(let)
	ask := func(path string, cookies ...*http.Cookie) int { // returns once the answer is being written, or refused
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := &stuck{ResponseRecorder: httptest.NewRecorder(), began: make(chan struct{}), let: let}
		done := make(chan int, 1)
		readers.Go(func() {
			s.Config.Handler.ServeHTTP(w, r)
			done <- w.Code
		})
		select {
		case <-w.began:
			return http.StatusOK
		case code := <-done:
			return code
		}
	}
	image, shared := sessionPath("slow", "/image/0/0"), link+"/sessions/slow/image/0/0"
	const fit = 48 / 7 // images of 6 MiB and some bytes
	for i := range fit + 2 {
		want := http.StatusOK
		if i > fit {
			want = http.StatusServiceUnavailable
		}
		kit.Equal(t, fmt.Sprint("visitor ", i), ask(shared), want)
	}
	for i := range fit + 2 { // beside slow visitors of the link
		want := http.StatusOK
		if i > fit {
			want = http.StatusServiceUnavailable
		}
		kit.Equal(t, fmt.Sprintf("page %d of the link's maker", i), ask(image, cookies...), want)
	}
	a := s.do(t, "GET", image, nil, nil)
	kit.Check(t, a.code == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "" &&
		a.header.Get("Content-Length") != fmt.Sprint(6<<20+8), "one more: %d %v", a.code, a.header)
	kit.Equal(t, "a small page of the same user", s.do(t, "GET", sessionPath("slow", ""), nil, nil).code, http.StatusOK)
	s.as(t, s.owner)
	kit.Equal(t, "another user", s.do(t, "GET", image, nil, nil).code, http.StatusOK)
	kit.Equal(t, "a link of another user", s.visit(t, s.link+"/sessions/mine/image/2/0").code, http.StatusOK)
}

// TestSharedSlowReaders: readers of a link who take none of what they asked for hold up neither others nor the link.
func TestSharedSlowReaders(t *testing.T) {
	s := newSharing(t)
	s.put(t, head("slow"), pictured(3<<20))
	link := s.share(t, "slow")
	for range 12 {
		s.stall(t, link+"/sessions/slow/image/0/0", "")
	}
	for _, path := range []string{link + "/sessions/slow", s.link + "/sessions/mine"} {
		kit.Equal(t, path+" beside slow readers", s.visit(t, path).code, http.StatusOK)
	}
}

// TestSharedGuesses: wrong links that pages of other sites have a browser ask for keep its reader from neither logging
// in nor opening a link; too many wrong links end no login.
func TestSharedGuesses(t *testing.T) {
	s := newSharing(t)
	picture := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image", "Sec-Fetch-Mode": "no-cors"}
	ask := func(header map[string]string) (last answer) {
		for i := range 30 {
			last = s.do(t, "GET", fmt.Sprintf("/s/GUESS%d", i), nil, header)
		}
		return last
	}
	kit.Equal(t, "pictures of other sites", ask(picture).code, http.StatusForbidden)
	kit.Equal(t, "a link that works as a picture of another site", s.do(t, "GET", s.link, nil, picture).code, http.StatusForbidden)
	opened := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}
	kit.Equal(t, "a link on another site that is opened", s.do(t, "GET", s.link, nil, opened).code, http.StatusOK)
	kit.Equal(t, "wrong links without end", ask(nil).code, http.StatusTooManyRequests)
	ana := s.addUser(t, "ana", server.Member)
	s.client = newClient(t)
	kit.Equal(t, "a login beside wrong links", s.login(t, s.addKey(t, ana, "new")).code, http.StatusOK)
}
