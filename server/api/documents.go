package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/wire"
)

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
