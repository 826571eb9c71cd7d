package markup

import (
	"html/template"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestFullCache: a cache never keeps more than its limit, and nothing that is very large.
func TestFullCache(t *testing.T) {
	var c Cache
	some := template.HTML(strings.Repeat("x", 100_000))
	for i := range 500 {
		key := cacheKey(strings.Repeat("k", i), "go")
		c.put(key, some)
		got, ok := c.get(key)
		kit.Require(t, ok && got == some, "%d: what was just kept is not there", i)
		held := len(c.code) * len(some)
		kit.Require(t, held <= cacheBytes && c.bytes <= cacheBytes+1000 && c.bytes >= held,
			"%d: it holds %d bytes and counts %d", i, held, c.bytes)
	}
	large := cacheKey("large", "go")
	c.put(large, template.HTML(strings.Repeat("x", cacheBytes/4)))
	_, ok := c.get(large)
	kit.Check(t, !ok, "one text may fill it")
	var none *Cache
	none.put(large, some)
	_, ok = none.get(large)
	kit.Check(t, !ok, "no cache keeps something")
}
