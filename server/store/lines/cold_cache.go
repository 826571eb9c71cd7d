package lines

import (
	"context"
	"slices"
	"sync"
)

// cache keeps objects that were read last, and reads each of them once for all who ask at the same time. Nobody writes
// to its bytes.
type cache struct {
	most int64

	mu     sync.Mutex
	size   int64
	kept   map[string][]byte
	order  []string // of kept, the one used last at the end
	flying map[string]*flight
}

// flight is an object that is being read.
type flight struct {
	done chan struct{}
	data []byte
	err  error
}

func newCache(most int64) *cache {
	return &cache{most: most, kept: map[string][]byte{}, flying: map[string]*flight{}}
}

// find returns an object that is there.
func (c *cache) find(id string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look(id)
}

func (c *cache) look(id string) ([]byte, bool) {
	data, ok := c.kept[id]
	if ok {
		c.order = append(slices.DeleteFunc(c.order, func(x string) bool { return x == id }), id)
	}
	return data, ok
}

// get returns an object, which read reads unless it is there or a caller reads it. read goes on when ctx is done:
// others may wait for it.
func (c *cache) get(ctx context.Context, id string, read func(context.Context) ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	if data, ok := c.look(id); ok {
		c.mu.Unlock()
		return data, nil
	}
	f := c.flying[id]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		c.flying[id] = f
		go c.fly(context.WithoutCancel(ctx), id, f, read)
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.data, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *cache) fly(ctx context.Context, id string, f *flight, read func(context.Context) ([]byte, error)) {
	f.data, f.err = read(ctx)
	c.mu.Lock()
	delete(c.flying, id)
	if f.err == nil {
		c.add(id, f.data)
	}
	c.mu.Unlock()
	close(f.done)
}

// add keeps an object, and lets those go that were used longest ago.
func (c *cache) add(id string, data []byte) {
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
