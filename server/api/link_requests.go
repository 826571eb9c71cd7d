package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/wire"
)

// linkRequestsStale is how long the cache trusts an answer about a machine's link requests.
const linkRequestsStale = 2 * time.Second

// maxCachedDaemons limits the number of machines in the cache.
const maxCachedDaemons = 4096

// linkRequestCache caches for which machines link requests wait, so that not every answer asks the store. The zero
// value is ready; safe for concurrent use.
type linkRequestCache struct {
	stale time.Duration // 0: linkRequestsStale
	mu    sync.Mutex
	known map[daemonKey]cachedWaiting // guarded by mu
}

type daemonKey struct {
	owner   int64
	machine string
}

type cachedWaiting struct {
	some bool
	at   time.Time
}

// some reports whether link requests wait.
func (k *linkRequestCache) some(ctx context.Context, store server.ArtifactIngester, who daemonKey) (bool, error) {
	now := time.Now()
	k.mu.Lock()
	last, ok := k.known[who]
	k.mu.Unlock()
	stale := k.stale
	if stale == 0 {
		stale = linkRequestsStale
	}
	if ok && now.Sub(last.at) < stale {
		return last.some, nil
	}
	list, err := store.PendingLinkRequests(ctx, who.owner, who.machine)
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= maxCachedDaemons {
		k.known = map[daemonKey]cachedWaiting{}
	}
	k.known[who] = cachedWaiting{len(list) > 0, now}
	return len(list) > 0, nil
}

// announceLinkRequests tells a daemon that link requests wait for it. If the store fails, it tells nothing and the
// request still succeeds: the daemon also polls.
func (s *Server) announceLinkRequests(w http.ResponseWriter, r *http.Request, who server.Key, machine string) {
	if machine == "" {
		return
	}
	some, err := s.linkCache.some(r.Context(), s.store.writes, daemonKey{who.User.ID, machine})
	if err != nil && r.Context().Err() == nil {
		s.logOf(r).Warn("link requests can't be looked up", "error", err)
	}
	if some {
		w.Header().Set(protocol.HeaderLinkRequests, "1")
	}
}

// pendingLinkRequests is GET /api/link-requests?machine: what waits for a machine's daemon, the oldest first.
func (s *Server) pendingLinkRequests(r *http.Request, who server.Key) (any, error) {
	machine := r.URL.Query().Get("machine")
	if machine == "" {
		return nil, wire.BadRequest("bad_query", "machine is missing")
	}
	list, err := s.store.writes.PendingLinkRequests(r.Context(), who.User.ID, machine)
	if err != nil {
		return nil, err
	}
	return struct {
		LinkRequests []protocol.LinkRequest `json:"link_requests"`
	}{each(list, func(x server.LinkRequest) protocol.LinkRequest {
		return protocol.LinkRequest{ID: x.ID, SessionID: x.SessionID, Path: x.Path, Link: x.Link}
	})}, nil
}

// linkRequestAnswer is a link request in the answer to a reader.
type linkRequestAnswer struct {
	server.LinkRequest
	By       string     `json:"by"`
	Answered *time.Time `json:"answered_at"`
}

func answerLinkRequest(x server.LinkRequest, names namesOf) linkRequestAnswer {
	return linkRequestAnswer{x, names[x.By], timeAnswer(x.Answered)}
}

// requestLink is POST /api/sessions/{id}/documents {path}: asks the session's daemon to link a document; DELETE, to
// unlink it.
func (s *Server) requestLink(w http.ResponseWriter, r *http.Request, who server.Key) error {
	var q struct {
		Path string `json:"path"`
	}
	if err := readBody(w, r, maxDocument, &q); err != nil {
		return err
	}
	input := server.LinkRequestInput{Path: q.Path, Link: r.Method == http.MethodPost, By: who.User.ID, At: time.Now()}
	x, err := s.store.artifacts.RequestLink(r.Context(), server.ScopeOf(who.User), refOf(r), input)
	switch {
	case errors.Is(err, server.ErrBadPath):
		return wire.BadRequest("bad_path", err.Error())
	case errors.Is(err, server.ErrTooManyLinkRequests):
		return wire.Refuse(http.StatusConflict, "too_many_link_requests", server.ErrTooManyLinkRequests.Error())
	case errors.Is(err, server.ErrNoDaemon):
		return wire.Refuse(http.StatusConflict, "no_daemon", server.ErrNoDaemon.Error())
	case errors.Is(err, server.ErrNotFound):
		if s.sees(r, who) {
			return wire.Refuse(http.StatusForbidden, "forbidden", "only whose session it is, or an owner, may ask for this")
		}
	}
	if err != nil {
		return err
	}
	names, err := s.store.users.UserNames(r.Context(), []int64{x.By})
	if err != nil {
		return err
	}
	s.logOf(r).Info("link request", "session", x.SessionID, "link", x.Link, "by", who.User.Name)
	s.answer(w, http.StatusAccepted, answerLinkRequest(x, names))
	return nil
}

// linkRequests is GET /api/sessions/{id}/link-requests.
func (s *Server) linkRequests(r *http.Request, who server.Key) (any, error) {
	list, err := s.store.artifacts.LinkRequests(r.Context(), server.ScopeOf(who.User), refOf(r))
	if err != nil {
		return nil, err
	}
	names, err := ownersOf(r, s.store.users, list, func(x *server.LinkRequest) int64 { return x.By })
	if err != nil {
		return nil, err
	}
	return struct {
		LinkRequests []linkRequestAnswer `json:"link_requests"`
	}{each(list, func(x server.LinkRequest) linkRequestAnswer { return answerLinkRequest(x, names) })}, nil
}
