package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
