//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
)

// rareWord is a word that few texts of conversations have.
var rareWord = regexp.MustCompile(` [0-9a-f]{8} `)

// questions are asked of what is derived: sessions, tokens, texts, and what happened when.
func (c *campaign) questions() []string {
	c.t.Helper()
	all := []string{"/api/sessions?limit=1000", "/api/usage?by=session", "/api/usage?by=day,model"}
	for i, f := range c.files {
		if i%4 > 0 {
			continue
		}
		words := rareWord.FindAllString(string(c.read(f.path)), -1)
		all = append(all, "/api/sessions/"+f.session+"/timeline?limit=1000",
			"/api/search?limit=100&q="+url.QueryEscape(words[c.rng.IntN(len(words))]))
	}
	return all
}

// answer is what the server says, without what two servers do not share.
func (w *world) answer(at string) string {
	w.t.Helper()
	code, body := w.exact.get(at)
	var v any
	if err := json.Unmarshal(body, &v); err != nil || code != http.StatusOK {
		w.t.Fatalf("%s: %d %.300s, %v", at, code, body, err)
	}
	text, err := json.MarshalIndent(same(v), "", " ")
	must(w.t, err)
	return string(text)
}

// same removes names and times of one server's own from an answer, and brings its lists into one order.
func same(v any) any {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(key string, _ any) bool {
			return slices.Contains([]string{"machine", "host", "user", "epoch", "path", "url", "first_received", "last_received",
				"last_active", "next"}, key)
		})
		for key, part := range v {
			v[key] = same(part)
		}
	case []any:
		for i := range v {
			v[i] = same(v[i])
		}
		slices.SortFunc(v, func(a, b any) int {
			x, y := fmt.Sprint(a), fmt.Sprint(b)
			return map[bool]int{true: -1, false: 1}[x < y]
		})
	}
	return v
}
