package web_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// pictured is a line with an image of so many bytes.
func pictured(size int) string {
	png := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, size)...))
	return fmt.Sprintf(`{"type":"user","uuid":"i","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}}`, png)
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
	cookie := "Cookie: " + s.client.Jar.Cookies(address)[0].String() + "\r\n"
	refusedAfter := func(path, header string) {
		t.Helper()
		for i := range 20 {
			if status := s.stalled(t, path, header); strings.Contains(status, "503") {
				kit.Check(t, i >= 5, "%s is refused after %d", path, i)
				return
			}
		}
		t.Errorf("%s: 20 slow readers are all answered", path)
	}
	refusedAfter(link+"/sessions/slow/image/0/0", "")
	image := sessionPath("slow", "/image/0/0")
	kit.Equal(t, "the link's maker, beside slow visitors", s.do(t, "GET", image, nil, nil).code, http.StatusOK)
	refusedAfter(image, cookie)
	if a := s.do(t, "GET", image, nil, nil); a.code != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" ||
		a.header.Get("Content-Length") == fmt.Sprint(6<<20+8) {
		t.Errorf("one more: %d %v", a.code, a.header)
	}
	kit.Equal(t, "a small page of the same user", s.do(t, "GET", sessionPath("slow", ""), nil, nil).code,
		http.StatusOK)
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
