package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

// putCheckpoints is POST /api/checkpoints.
func (s *Server) putCheckpoints(w http.ResponseWriter, r *http.Request, who server.Key) error {
	b, err := readItems(s, w, r, wire.ParseCheckpoints)
	if err != nil {
		return err
	}
	b.Owner, b.Quota, b.Received = who.User.ID, s.Quota.For(who.User), time.Now()
	if b.Head.Writer, err = writerOf(r); err != nil {
		return err
	}
	err = s.store.writes.PutCheckpoints(r.Context(), b)
	if err == nil {
		s.counts.Artifacts(int64(len(b.List)), 0, 0, 0)
	}
	return s.answerStored(w, r, who, b.Head, len(b.List), err)
}

// checkpoints is GET /api/checkpoints?session&user&after&limit, and GET /api/sessions/{id}/checkpoints?user&machine&
// after&limit: the latest first.
func (s *Server) checkpoints(r *http.Request, who server.Key) (any, error) {
	f := s.filter(r)
	q := server.CheckpointQuery{Session: r.URL.Query().Get("session"), After: f.Text("after"), Limit: f.Limit()}
	if ref := refOf(r); ref.SessionID != "" {
		q.Session, q.Ref = "", &ref
	}
	var err error
	if q.User, err = s.userOf(r, who, f, q.Session); err != nil {
		return nil, err
	}
	list, err := s.store.artifacts.Checkpoints(r.Context(), server.ScopeOf(who.User), q)
	if err != nil {
		return nil, err
	}
	names, err := ownersOf(r, s.store.users, list.List, func(c *server.Checkpoint) int64 { return c.Owner })
	if err != nil {
		return nil, err
	}
	return struct {
		Checkpoints []checkpointAnswer `json:"checkpoints"`
		Next        *string            `json:"next"` // null on the last page
	}{each(list.List, func(c server.Checkpoint) checkpointAnswer { return checkpointAnswerOf(c, names) }),
		orNull(list.Next)}, nil
}

// checkpoint is GET /api/checkpoints/{id}?user.
func (s *Server) checkpoint(r *http.Request, who server.Key) (any, error) {
	f := s.filter(r)
	owner := f.User()
	if f.Err != nil {
		return nil, f.Err
	}
	c, err := s.store.artifacts.Checkpoint(r.Context(), server.ScopeOf(who.User), r.PathValue("id"), owner)
	if err != nil {
		return nil, err
	}
	names, err := s.store.users.UserNames(r.Context(), []int64{c.Owner})
	if err != nil {
		return nil, err
	}
	return checkpointAnswerOf(c, names), nil
}

// checkpointAnswer is a checkpoint on the wire.
type checkpointAnswer struct {
	server.Checkpoint
	User string `json:"user"`
	Line *int64 `json:"line"`
}

func checkpointAnswerOf(c server.Checkpoint, names namesOf) checkpointAnswer {
	return checkpointAnswer{c, names[c.Owner], lineOrNull(c.Line)}
}

// lineOrNull is nil for no line.
func lineOrNull(line int64) *int64 {
	if line < 0 {
		return nil
	}
	return &line
}

// putDocuments is POST /api/documents.
func (s *Server) putDocuments(w http.ResponseWriter, r *http.Request, who server.Key) error {
	b, err := readItems(s, w, r, wire.ParseDocuments)
	if err != nil {
		return err
	}
	b.Owner, b.Quota, b.Received = who.User.ID, s.Quota.For(who.User), time.Now()
	if b.Head.Writer, err = writerOf(r); err != nil {
		return err
	}
	err = s.store.writes.PutDocuments(r.Context(), b)
	if err == nil {
		s.counts.Artifacts(0, int64(len(b.Events)), 0, 0)
	}
	return s.answerStored(w, r, who, b.Head, len(b.Events), err)
}

// documentAnswer is a document on the wire.
type documentAnswer struct {
	server.Document
	AddedAt    *time.Time `json:"added_at"`
	UnlinkedAt *time.Time `json:"unlinked_at"`
	ChangedAt  *time.Time `json:"changed_at"`
}

// documents is GET /api/sessions/{id}/documents?machine.
func (s *Server) documents(r *http.Request, who server.Key) (any, error) {
	list, err := s.store.artifacts.Documents(r.Context(), server.ScopeOf(who.User), refOf(r))
	if err != nil {
		return nil, err
	}
	a := struct {
		Documents []documentAnswer `json:"documents"`
	}{each(list, func(d server.Document) documentAnswer {
		return documentAnswer{d, timeAnswer(d.AddedAt), timeAnswer(d.UnlinkedAt), timeAnswer(d.ChangedAt)}
	})}
	return a, nil
}

// versionAnswer is a version on the wire.
type versionAnswer struct {
	server.Version
	Line *int64 `json:"line"`
}

// versions is GET /api/sessions/{id}/documents/{path}/versions?machine&before&limit: the newest first.
func (s *Server) versions(r *http.Request, who server.Key) (any, error) {
	f := newQuery(r.URL.Query(), nil)
	page := server.VersionPage{Limit: f.Limit()}
	if f.Err != nil {
		return nil, f.Err
	}
	var err error
	if page.Before, err = numberOf(r.URL.Query(), "before", 0); err != nil || page.Before < 0 {
		return nil, wire.BadRequest("bad_query", "before is not a number from 0")
	}
	list, err := s.store.artifacts.Versions(r.Context(), server.ScopeOf(who.User), refOf(r), r.PathValue("path"), page)
	if err != nil {
		return nil, err
	}
	return struct {
		Versions []versionAnswer `json:"versions"`
		Next     *int64          `json:"next"` // before of the next page; null on the last
	}{each(list.List, func(v server.Version) versionAnswer { return versionAnswer{v, lineOrNull(v.Line)} }),
		orNull(list.Next)}, nil
}

// document is GET /api/sessions/{id}/documents/{path}?machine&version: its content as it was.
func (s *Server) document(w http.ResponseWriter, r *http.Request, who server.Key) error {
	n, err := numberOf(r.URL.Query(), "version", 0)
	if err != nil || n < 0 {
		return wire.BadRequest("bad_query", "version is not a number from 0")
	}
	name := r.PathValue("path")
	v, content, err := s.store.artifacts.Content(r.Context(), server.ScopeOf(who.User), refOf(r), name, n)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set(protocol.HeaderDocumentVersion, strconv.FormatInt(v.N, 10))
	return s.serveFile(w, r, name, v.Size, content)
}

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
	if err := s.readBody(w, r, maxDocument, &q); err != nil {
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
