package web_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/ccship/ccship/server"
)

// TestSharedSlowReaders: readers of a link who take none of what they asked for hold up neither others nor the link.
func TestSharedSlowReaders(t *testing.T) {
	s := newSharing(t)
	png := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 6<<20)...))
	s.put(t, head("slow"), fmt.Sprintf(`{"type":"user","uuid":"i","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}}`, png))
	form := s.do(t, "POST", sessionPath("slow", "/share"), url.Values{"expires": {"7d"}}, nil)
	link := regexp.MustCompile(`>http://[^"/<]+(/s/[A-Z2-7]{26,})<`).FindStringSubmatch(form.body)
	if link == nil {
		t.Fatalf("%d without a link", form.code)
	}
	for range 12 {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET %s/sessions/slow/image/0/0 HTTP/1.1\r\nHost: %s\r\n\r\n", link[1], s.Listener.Addr()); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
		if err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q %v", line, err)
		}
	}
	for _, path := range []string{link[1] + "/sessions/slow", s.link + "/sessions/mine"} {
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
