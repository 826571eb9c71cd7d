package delivery

import (
	"context"
	"net/http"
	"net/url"

	"github.com/ccship/ccship/keyproof"
)

// clientOf returns a client for one server, which shows a key over plain HTTP only to whoever proves to know it, once a
// server with a store was there. base is the server's URL. The caller holds mu.
func (s *Servers) clientOf(dest string, base *url.URL) *http.Client {
	if client := s.clients[dest]; client != nil {
		return client
	}
	shared, ok := s.client.Transport.(*http.Transport)
	if !ok { // not made by outbox.NewClient
		return s.client
	}
	own := *s.client
	own.Transport = &keyproof.Transport{Base: base, Plain: shared, Known: s.knownBefore(dest)}
	s.clients[dest] = &own
	return &own
}

// knownBefore returns whether a server with a store of its own was at a destination, in this run or by the state.
// A plain server has none, so it cannot be told from another.
func (s *Servers) knownBefore(dest string) func() bool {
	return func() bool {
		if s.plain {
			return false
		}
		if drainer := s.drainer(dest); drainer != nil {
			known, _, err := drainer.Ledger(context.Background())
			return err != nil || known.Store != "" // what cannot be read may have been there
		}
		learned, err := s.db.Outbox.Learned(context.Background(), dest)
		return err != nil || learned.Ledger.Store != ""
	}
}

// closeIdle closes connections that no request uses.
func (s *Servers) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client.CloseIdleConnections()
	for _, client := range s.clients {
		client.CloseIdleConnections()
	}
}
