package derive

import (
	"sync/atomic"

	"github.com/ccship/ccship/tail"
)

// cache holds the projections in memory. It is owned by Run's goroutine, except for count.
type cache struct {
	projections map[tail.FileID]*liveProjection
	full        bool         // a projection must be evicted, but none is saved yet
	count       atomic.Int64 // len(projections)
}

func (c *cache) add(p *liveProjection) {
	c.projections[p.file] = p
	c.count.Store(int64(len(c.projections)))
}

func (c *cache) remove(p *liveProjection) {
	delete(c.projections, p.file)
	c.count.Store(int64(len(c.projections)))
}

// holds reports whether p is in the cache, and not another projection of its file.
func (c *cache) holds(p *liveProjection) bool { return c.projections[p.file] == p }

// evict removes the least recently used saved projections while there are too many. It keeps latest unless that is
// transient; latest may be nil.
func (c *cache) evict(latest *liveProjection) {
	c.full = false
	if latest != nil && latest.transient && latest.saved() {
		c.remove(latest)
	}
	for {
		size := 0
		var oldest *liveProjection
		for _, p := range c.projections {
			size += p.size
			if p != latest && p.saved() && (oldest == nil || p.usedAt.Before(oldest.usedAt)) {
				oldest = p
			}
		}
		if len(c.projections) <= maxCached && size <= maxCacheSize {
			return
		}
		if oldest == nil {
			c.full = len(c.projections) > 1 // they leave once they are saved
			return
		}
		c.remove(oldest)
	}
}

// newest returns the most recently used projection; nil: the cache is empty.
func (c *cache) newest() (last *liveProjection) {
	for _, p := range c.projections {
		if last == nil || p.usedAt.After(last.usedAt) {
			last = p
		}
	}
	return last
}
