package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web"
)

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
	if a := s.visit(t, s.link); a.code != http.StatusOK || !strings.Contains(a.body, "behind it") || strings.Contains(a.body, "needle") {
		t.Errorf("the link answers %d with %d bytes", a.code, len(a.body))
	}
	kit.Check(t, most <= server.LongHead, "%d bytes of a line are held at once", most)
}
