package lines

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"
)

// cache keeps objects that were read last, and reads each of them once for all who ask at the same time. Nobody writes
// to its bytes.
type cache struct {
	most int64

	reads singleflight.Group

	mu    sync.Mutex
	size  int64
	kept  map[string][]byte
	order []string // of kept, the one used last at the end
}

func newCache(most int64) *cache {
	return &cache{most: most, kept: map[string][]byte{}}
}

// find returns an object that is there.
func (c *cache) find(id string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, ok := c.kept[id]
	if ok {
		c.order = append(slices.DeleteFunc(c.order, func(x string) bool { return x == id }), id)
	}
	return data, ok
}

// get returns an object, which read reads unless it is there or a caller reads it. read goes on when ctx is done:
// others may wait for it.
func (c *cache) get(ctx context.Context, id string, read func(context.Context) ([]byte, error)) ([]byte, error) {
	if data, ok := c.find(id); ok {
		return data, nil
	}
	answer := c.reads.DoChan(id, func() (any, error) {
		data, err := read(context.WithoutCancel(ctx))
		if err == nil {
			c.add(id, data)
		}
		return data, err
	})
	select {
	case r := <-answer:
		data, _ := r.Val.([]byte)
		return data, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// add keeps an object, and lets those go that were used longest ago.
func (c *cache) add(id string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, have := c.kept[id]; have || int64(len(data)) > c.most {
		return
	}
	c.kept[id], c.order, c.size = data, append(c.order, id), c.size+int64(len(data))
	for c.size > c.most {
		c.drop(c.order[0])
	}
}

func (c *cache) drop(id string) {
	c.size -= int64(len(c.kept[id]))
	delete(c.kept, id)
	c.order = slices.DeleteFunc(c.order, func(x string) bool { return x == id })
}

// forget lets an object go.
func (c *cache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(id)
}
