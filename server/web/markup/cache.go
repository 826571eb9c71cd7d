package markup

import (
	"crypto/sha256"
	"html/template"
	"sync"
)

// cacheBytes limits what a Cache keeps.
const cacheBytes = 8 << 20

// Cache keeps coloured code, so that a page that is read again costs less: colouring is most of what a page takes. It
// drops everything once it is full. For concurrent use; the zero Cache is empty.
type Cache struct {
	mu    sync.Mutex
	code  map[[32]byte]template.HTML // guarded by mu
	bytes int                        // guarded by mu
}

func cacheKey(text, language string) [32]byte {
	h := sha256.New()
	_, _ = h.Write([]byte(language)) // a hash takes everything
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(text))
	return [32]byte(h.Sum(nil))
}

func (c *Cache) get(key [32]byte) (code template.HTML, ok bool) {
	if c == nil {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	code, ok = c.code[key]
	return code, ok
}

func (c *Cache) put(key [32]byte, code template.HTML) {
	if c == nil || len(code) > cacheBytes/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code == nil || c.bytes+len(code) > cacheBytes {
		c.code, c.bytes = map[[32]byte]template.HTML{}, 0
	}
	if _, have := c.code[key]; !have {
		c.code[key] = code
		c.bytes += len(code) + len(key)
	}
}
