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
)

// TestSharedSlowReaders: readers of a link who take none of what they asked for hold up neither others nor the link.
func TestSharedSlowReaders(t *testing.T) {
	s := newSharing(t)
	png := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 6<<20)...))
	s.put(t, head("slow"), fmt.Sprintf(`{"type":"user","uuid":"i","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}}`, png))
	form := s.do(t, "POST", sessionPath("slow", "/share"), url.Values{"expires": {"7d"}}, nil)
	link := regexp.MustCompile(`data-copy="http://[^"/]+(/s/[A-Z2-7]{26,})"`).FindStringSubmatch(form.body)
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
