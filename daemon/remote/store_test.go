package remote

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// Answers of one database count. Those of another one, or without a name among those with one, are refused; a server
// that names none is taken as it is.
func TestOfOneStore(t *testing.T) {
	for name, c := range map[string]struct {
		of      string
		answers []string // the database of each answer
		refused int      // the first answer that is refused; -1: none
	}{
		"the known one":            {"a", []string{"a", "a"}, -1},
		"another one":              {"a", []string{"b"}, 0},
		"in turn":                  {"a", []string{"a", "b"}, 1},
		"the first that answers":   {"", []string{"b", "b", "a"}, 2},
		"one without a name":       {"a", []string{"a", ""}, 1},
		"one without a name first": {"", []string{"", "a"}, 1},
		"never named":              {"a", []string{"", ""}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if store := c.answers[asked]; store != "" {
					w.Header().Set(protocol.HeaderStore, store)
				}
				asked++
				_, _ = w.Write([]byte(`{}`))
			}))
			defer s.Close()
			base := kit.Try(url.Parse(s.URL)).Must(t)
			client := (&Client{Base: base, HTTP: s.Client(), Key: func() (string, error) { return "", nil }}).Of(c.of)
			refused := -1
			for i := range c.answers {
				if _, err := client.Ledger(t.Context(), "m", 0); err != nil {
					kit.Require(t, Is(err, CodeOtherStore), "%v", err)
					refused = i
					break
				}
			}
			kit.Check(t, refused == c.refused, "refused answer %d, want %d", refused, c.refused)
		})
	}
}
