package web_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"

	"github.com/ccship/ccship/server"
)

// TestSharedSlowReaders: readers of a link who take none of what they asked for hold up neither others nor the link.
func TestSharedSlowReaders(t *testing.T) {
	s := newSharing(t)
	png := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 6<<20)...))
	s.put(t, head("slow"), fmt.Sprintf(`{"type":"user","uuid":"i","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}}`, png))
	link := s.share(t, "slow")
	for range 12 {
		s.stall(t, link+"/sessions/slow/image/0/0", "")
	}
	for _, path := range []string{link + "/sessions/slow", s.link + "/sessions/mine"} {
		if a := s.visit(t, path); a.code != http.StatusOK {
			t.Errorf("%s beside slow readers: %d", path, a.code)
		}
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
	if a := ask(picture); a.code != http.StatusForbidden {
		t.Errorf("pictures of other sites: %d", a.code)
	}
	if a := s.do(t, "GET", s.link, nil, picture); a.code != http.StatusForbidden {
		t.Errorf("a link that works as a picture of another site: %d", a.code)
	}
	opened := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}
	if a := s.do(t, "GET", s.link, nil, opened); a.code != http.StatusOK {
		t.Errorf("a link on another site that is opened: %d", a.code)
	}
	if a := ask(nil); a.code != http.StatusTooManyRequests {
		t.Errorf("wrong links without end: %d", a.code)
	}
	ana := s.addUser(t, "ana", server.Member)
	s.client = newClient(t)
	if a := s.login(t, s.addKey(t, ana, "new")); a.code != http.StatusOK {
		t.Errorf("a login beside wrong links: %d", a.code)
	}
}
