package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web"
)

// TestUsagePeriod: a period in which nothing was used becomes the newest one with any use, and what stands under "When"
// is of it too.
func TestUsagePeriod(t *testing.T) {
	s := newSite(t, func(v *web.Viewer) { v.Now = func() time.Time { return today.AddDate(0, 7, 0) } })
	a := s.login(t, s.key)
	kit.Require(t, a.code == http.StatusOK, "login: %d", a.code)
	mustHave(t, s.get(t, "/usage"), "No token use yet")
	shelf(t, s)
	s.put(t, head("older"), prompt("older", "claude-opus-4-8", "2026-03-15T04:00:00Z")...)
	for _, path := range []string{"/usage", "/usage?range=7"} {
		page := s.get(t, path)
		mustHave(t, page, "Nothing was used lately", "days up to 20 November 2026", `<dt>Responses</dt><dd>4</dd>`,
			"Wed, 18 Nov 2026: opus-4-8 $", "the year up to 20 November 2026", "Wed 10:00: 1 answer", "Sun, 15 Mar 2026: 1 answer")
		mustLack(t, page, "Sun 04:00: 1 answer", "Mon, 21 Jun 2027")
	}
	all := s.get(t, "/usage?range=all")
	mustHave(t, all, "hour of the week, all time", "Sun 04:00: 1 answer")
	mustLack(t, all, "Nothing was used lately")
	mustHave(t, s.get(t, "/usage?project=none"), "No token use of what you chose")
}
