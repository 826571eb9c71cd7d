package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/thread"
)

// requested is the stream that a request names.
func requested(r *http.Request) thread.Stream {
	q := r.URL.Query()
	s := thread.Stream{ID: r.PathValue("id"), User: number(q.Get(thread.UserParam), 0), Epoch: q.Get("epoch"),
		Generation: number(q.Get("generation"), -1)}
	if q.Has("machine") {
		m := q.Get("machine")
		s.Machine = &m
	}
	return s
}

// open pins the requested stream and view while fn runs. For the reader, what is not visible does not exist.
func (v *Viewer) open(ctx context.Context, who server.Login, s thread.Stream,
	fn func(server.Snapshot, server.View) error) (err error) {
	snap, err := v.store.View(ctx, server.ScopeOf(who.User), s.Ref())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	view, err := s.View(snap)
	if err != nil {
		return err
	}
	return fn(snap, view)
}

// ownerOf is whose session a listing that names one is about: the address says it, or there is only one.
func (v *Viewer) ownerOf(r *http.Request, who server.Login) (int64, error) {
	q := r.URL.Query()
	ref := server.Ref{SessionID: q.Get("session"), Owner: number(q.Get(thread.UserParam), 0)}
	if ref.SessionID == "" || ref.Owner != 0 {
		return ref.Owner, nil
	}
	x, err := v.store.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if errors.Is(err, server.ErrNotFound) {
		return 0, nil
	}
	return x.Owner, err
}

// query is an address with some of its values changed; "" removes a value.
func query(path string, q url.Values, change ...string) string {
	next := url.Values{}
	for k, v := range q {
		if len(v) > 0 && v[0] != "" {
			next.Set(k, v[0])
		}
	}
	for i := 0; i+1 < len(change); i += 2 {
		next.Set(change[i], change[i+1])
		if change[i+1] == "" {
			next.Del(change[i])
		}
	}
	if len(next) == 0 {
		return path
	}
	return path + "?" + next.Encode()
}

// zoneCookie is set by the browser: minutes east of UTC.
const zoneCookie = "ccship_zone"

// zone is how far east of UTC the browser is.
func zone(r *http.Request) time.Duration {
	c, err := r.Cookie(zoneCookie)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(c.Value)
	if err != nil || n < -14*60 || n > 14*60 {
		return 0
	}
	return time.Duration(n) * time.Minute
}

// number reads a whole number ≥ 0; anything else is absent.
func number(s string, absent int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return absent
	}
	return n
}
