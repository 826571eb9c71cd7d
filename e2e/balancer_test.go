//go:build unix

package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// balancer is one address in front of several servers. Connections go to them in turn; one that does not answer is
// passed over. It is as simple as a balancer can be: a request that was begun is never repeated.
type balancer struct {
	listener net.Listener

	mu       sync.Mutex
	backends []string // guarded by mu, as next
	next     int
}

func newBalancer(t testing.TB) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b := &balancer{listener: l}
	t.Cleanup(func() { l.Close() })
	go b.run()
	return b
}

func (b *balancer) url() string { return "http://" + b.listener.Addr().String() }

// set names the servers.
func (b *balancer) set(servers ...*shipServer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = nil
	for _, s := range servers {
		b.backends = append(b.backends, s.url.Host)
	}
}

func (b *balancer) run() {
	for {
		front, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.serve(front)
	}
}

// serve passes bytes on in both directions until one side ends.
func (b *balancer) serve(front net.Conn) {
	defer front.Close()
	back := b.dial()
	if back == nil {
		return
	}
	defer back.Close()
	done := make(chan struct{}, 2)
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go pipe(front, back)
	go pipe(back, front)
	<-done
}

// dial connects to the next server that is there; nil: none is.
func (b *balancer) dial() net.Conn {
	b.mu.Lock()
	hosts := append(append([]string{}, b.backends[b.next:]...), b.backends[:b.next]...)
	b.next = (b.next + 1) % len(b.backends)
	b.mu.Unlock()
	for _, host := range hosts {
		if c, err := net.Dial("tcp", host); err == nil {
			return c
		}
	}
	return nil
}
