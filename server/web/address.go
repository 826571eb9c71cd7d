package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/ccship/ccship/server"
)

// stream names what a page shows: a session of a machine, and where that is not the newest, an epoch and a generation.
type stream struct {
	ID         string
	Machine    *string // nil: the one heard last
	Epoch      string
	Generation int64 // -1: the newest
}

func streamOf(x server.Session) stream {
	return stream{ID: x.SessionID, Machine: &x.Machine, Generation: -1}
}

// requested is the stream that a request names.
func requested(r *http.Request) stream {
	q := r.URL.Query()
	s := stream{ID: r.PathValue("id"), Epoch: q.Get("epoch"), Generation: number(q.Get("generation"), -1)}
	if q.Has("machine") {
		m := q.Get("machine")
		s.Machine = &m
	}
	return s
}

func (s stream) ref() server.Ref {
	return server.Ref{SessionID: s.ID, Machine: s.Machine, Epoch: s.Epoch}
}

// path is the address, below the base, of the session's page or of what lies below that. more is names and values of
// its query; "" values are left out. The id is one path element, whatever is in it.
func (s stream) path(below string, more ...string) string {
	q := url.Values{}
	if s.Machine != nil {
		q.Set("machine", *s.Machine)
	}
	if s.Epoch != "" {
		q.Set("epoch", s.Epoch)
	}
	if s.Generation >= 0 {
		q.Set("generation", strconv.FormatInt(s.Generation, 10))
	}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	p := "/sessions/" + url.PathEscape(s.ID) + below
	if len(q) > 0 {
		p += "?" + q.Encode()
	}
	return p
}

// line is the permalink of a line.
func (s stream) line(n int64) string { return s.path("/L/" + strconv.FormatInt(n, 10)) }

// document is the page of a linked document, below that of its session. more is as in path.
func (s stream) document(name string, more ...string) string {
	return s.path("/document", append([]string{"path", name}, more...)...)
}

// query is an address with some of its values changed: "" takes one out.
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
