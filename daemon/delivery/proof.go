package delivery

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/protocol"
)

// clientOf returns a client for one server. If a server with a store was there before, the client shows a key over
// plain HTTP only to a server that proves to know it. base is the server's URL. The caller holds mu.
func (s *Servers) clientOf(dest string, base *url.URL) *http.Client {
	if client := s.clients[dest]; client != nil {
		return client
	}
	if _, ok := s.Client.Transport.(*http.Transport); !ok { // not made by outbox.NewClient
		return s.Client
	}
	own := protocol.NewProvenClient(s.Client, base, project.ServerURL(dest), s.knownBefore(dest))
	s.clients[dest] = own
	return own
}

// knownBefore returns whether a server with a store of its own was at a destination, in this run or by the state.
// A plain server has none, so it cannot be distinguished from another. What is known is noted for commands that do not
// ask the daemon.
func (s *Servers) knownBefore(dest string) func() bool {
	server := project.ServerURL(dest)
	var noted atomic.Bool
	return func() bool {
		if s.Plain {
			return false
		}
		had, err := s.hadStore(dest)
		if err != nil { // what cannot be read may have been there
			return true
		}
		if had && !noted.Swap(true) {
			if err := s.Proven.Add(server); err != nil {
				s.Log.Warn("commands without the daemon do not know the server yet", "server", server, "err", err)
			}
		}
		return had || s.Proven.Has(server)
	}
}

// noteProven notes the servers that are known by now.
func (s *Servers) noteProven() {
	for dest := range s.drainers() {
		_ = s.knownBefore(dest)()
	}
}

func (s *Servers) hadStore(dest string) (bool, error) {
	if drainer := s.drainer(dest); drainer != nil {
		known, _, err := drainer.Ledger(context.Background())
		return known.Store != "", err
	}
	learned, err := s.State.Outbox.Learned(context.Background(), dest)
	return learned.Ledger.Store != "", err
}

// closeIdle closes connections that no request uses.
func (s *Servers) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Client.CloseIdleConnections()
	for _, client := range s.clients {
		client.CloseIdleConnections()
	}
}
