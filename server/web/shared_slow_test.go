package web_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

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
	kit.Equal(t, "a link that works as a picture of another site", s.do(t, "GET", s.link, nil, picture).code,
		http.StatusForbidden)
	opened := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}
	kit.Equal(t, "a link on another site that is opened", s.do(t, "GET", s.link, nil, opened).code, http.StatusOK)
	kit.Equal(t, "wrong links without end", ask(nil).code, http.StatusTooManyRequests)
	ana := s.addUser(t, "ana", server.Member)
	s.client = newClient(t)
	kit.Equal(t, "a login beside wrong links", s.login(t, s.addKey(t, ana, "new")).code, http.StatusOK)
}
