package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

// wishesStale is for how long it is believed that wishes wait for a machine, or none.
const wishesStale = 2 * time.Second

// maxWishers bounds how many machines that is remembered of.
const maxWishers = 4096

// wishing remembers for which machines wishes wait, so that answers can say so without asking the store each time. The
// zero value is ready; safe for concurrent use.
type wishing struct {
	stale time.Duration // 0: wishesStale
	mu    sync.Mutex
	known map[wisher]waiting // guarded by mu
}

type wisher struct {
	owner   int64
	machine string
}

type waiting struct {
	some bool
	at   time.Time
}

// some says whether wishes wait.
func (k *wishing) some(ctx context.Context, store server.PaperIngester, who wisher) (bool, error) {
	now := time.Now()
	k.mu.Lock()
	last, ok := k.known[who]
	k.mu.Unlock()
	stale := k.stale
	if stale == 0 {
		stale = wishesStale
	}
	if ok && now.Sub(last.at) < stale {
		return last.some, nil
	}
	list, err := store.Asked(ctx, who.owner, who.machine)
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= maxWishers {
		k.known = map[wisher]waiting{}
	}
	k.known[who] = waiting{len(list) > 0, now}
	return len(list) > 0, nil
}

// announceWishes lets a daemon know that wishes wait for it. That it can't be found out is no reason to refuse what the
// answer is to: the daemon asks by itself now and then.
func (s *Server) announceWishes(w http.ResponseWriter, r *http.Request, who server.Key, machine string) {
	if machine == "" {
		return
	}
	some, err := s.wishing.some(r.Context(), s.store, wisher{who.User.ID, machine})
	if err != nil && r.Context().Err() == nil {
		s.logOf(r).Warn("wishes can't be looked up", "error", err)
	}
	if some {
		w.Header().Set("Ccship-Link-Requests", "1")
	}
}

// askedAnswer is a wish as a daemon gets it.
type askedAnswer struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	Link      bool   `json:"link"`
}

// asked is GET /api/link-requests?machine: what waits for a machine's daemon, the oldest first.
func (s *Server) asked(w http.ResponseWriter, r *http.Request, who server.Key) error {
	machine := r.URL.Query().Get("machine")
	if machine == "" {
		return wire.BadRequest("bad_query", "machine is missing")
	}
	list, err := s.store.Asked(r.Context(), who.User.ID, machine)
	if err != nil {
		return err
	}
	a := struct {
		Wishes []askedAnswer `json:"link_requests"`
	}{make([]askedAnswer, 0, len(list))}
	for _, x := range list {
		a.Wishes = append(a.Wishes, askedAnswer{x.ID, x.SessionID, x.Path, x.Link})
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

// wishAnswer is a wish as those who read get it.
type wishAnswer struct {
	ID       string     `json:"id"`
	Path     string     `json:"path"`
	Link     bool       `json:"link"`
	By       string     `json:"by"`
	Machine  string     `json:"machine"`
	Host     string     `json:"host"`
	Asked    time.Time  `json:"created_at"`
	State    string     `json:"state"`
	Reason   string     `json:"reason"`
	Answered *time.Time `json:"answered_at"`
}

func answerWish(x server.Wish, names names) wishAnswer {
	return wishAnswer{x.ID, x.Path, x.Link, names[x.By], x.Machine, x.Host, x.Asked, string(x.State), x.Reason, momentOrNull(x.Answered)}
}

// link is POST /api/sessions/{id}/documents {path}: asks the session's daemon to link a document.
func (s *Server) link(w http.ResponseWriter, r *http.Request, who server.Key) error {
	return s.wish(w, r, who, true)
}

// unlink is DELETE /api/sessions/{id}/documents {path}.
func (s *Server) unlink(w http.ResponseWriter, r *http.Request, who server.Key) error {
	return s.wish(w, r, who, false)
}

func (s *Server) wish(w http.ResponseWriter, r *http.Request, who server.Key, link bool) error {
	var q struct {
		Path string `json:"path"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	x, err := s.store.Wish(r.Context(), server.ScopeOf(who.User), refOf(r), server.NewWish{Path: q.Path, Link: link, By: who.User.ID, At: time.Now()})
	switch {
	case errors.Is(err, server.ErrBadPath):
		return wire.BadRequest("bad_path", err.Error())
	case errors.Is(err, server.ErrTooManyWishes):
		return wire.Refuse(http.StatusConflict, "too_many_link_requests", server.ErrTooManyWishes.Error())
	case errors.Is(err, server.ErrNoDaemon):
		return wire.Refuse(http.StatusConflict, "no_daemon", server.ErrNoDaemon.Error())
	case errors.Is(err, server.ErrNotFound):
		if s.open(r, who, func(context.Context, server.Snapshot) error { return nil }) == nil {
			return wire.Refuse(http.StatusForbidden, "forbidden", "only whose session it is, or an owner, may ask for this")
		}
	}
	if err != nil {
		return err
	}
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	s.logOf(r).Info("wish", "session", x.SessionID, "link", x.Link, "by", who.User.Name)
	s.answer(w, http.StatusAccepted, answerWish(x, names))
	return nil
}

// wishes is GET /api/sessions/{id}/link-requests.
func (s *Server) wishes(w http.ResponseWriter, r *http.Request, who server.Key) error {
	list, err := s.store.Wishes(r.Context(), server.ScopeOf(who.User), refOf(r))
	if err != nil {
		return err
	}
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	a := struct {
		Wishes []wishAnswer `json:"link_requests"`
	}{make([]wishAnswer, 0, len(list))}
	for _, x := range list {
		a.Wishes = append(a.Wishes, answerWish(x, names))
	}
	s.answer(w, http.StatusOK, a)
	return nil
}
