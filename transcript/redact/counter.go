package redact

import (
	"regexp"
	"sync"
)

// Counter counts the tokens in what is written to it. What merely looks like a token counts too, and secrets that are
// too short for one do not.
type Counter struct {
	N    int64
	rest []byte // the end of what was written, where a token may have begun
}

// tokenStart is a token as far as its length is bounded.
var tokenStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[[a-z0-9-]{0,40}:[a-z2-7]{8,26}[.\]]`)
})

const longestStart = len("[:]") + 40 + fullHash

// Write implements io.Writer. It never fails.
func (c *Counter) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	end := 0
	for _, loc := range tokenStart().FindAllIndex(c.rest, -1) {
		c.N++
		end = loc[1]
	}
	keep := max(end, len(c.rest)-longestStart+1)
	c.rest = append(c.rest[:0], c.rest[keep:]...)
	return len(p), nil
}
