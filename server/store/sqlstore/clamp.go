package sqlstore

import (
	"github.com/ccship/ccship/server"
)

const (
	// maxTokens limits the tokens of one answer, so that no sum overflows. maxKey limits its key, in bytes.
	maxTokens = 1 << 40
	maxKey    = 512
)

// CleanKey returns an answer's key as it is stored.
func CleanKey(key string) string {
	if len(key) > maxKey {
		key = key[:maxKey]
	}
	return CleanText(key)
}

// ClampTokens limits the tokens of an answer.
func ClampTokens(t server.Tokens) server.Tokens {
	for _, n := range []*int64{&t.Input, &t.Output, &t.CacheRead, &t.CacheWrite5m, &t.CacheWrite1h, &t.Searches} {
		*n = min(max(*n, 0), maxTokens)
	}
	return t
}

// NotNil returns the bytes of a line; none are not NULL.
func NotNil(raw []byte) []byte {
	if raw == nil {
		return []byte{}
	}
	return raw
}
