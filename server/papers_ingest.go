package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

type storedAnswer struct {
	Success   bool `json:"success"`
	Stored    int  `json:"stored"`
	Forgotten bool `json:"forgotten,omitempty"` // the session was forgotten: nothing of it is stored any more
}

// answerStored acknowledges n items, and those of a session that was forgotten, so that the client goes on to what is
// still wanted.
func (s *Server) answerStored(w http.ResponseWriter, r *http.Request, who Key, h Head, n int, err error) error {
	gone := errors.Is(err, ErrForgotten)
	if err != nil && !gone {
		return err
	}
	if gone {
		n = 0
	}
	s.announceWishes(w, r, who, h.Machine)
	s.answer(w, http.StatusOK, storedAnswer{true, n, gone})
	return nil
}

// putCheckpoints is POST /api/checkpoints.
func (s *Server) putCheckpoints(w http.ResponseWriter, r *http.Request, who Key) error {
	var q struct {
		paperHead
		Items *[]checkpointItem `json:"checkpoints"`
	}
	if err := s.readPapers(w, r, maxPapers, &q); err != nil {
		return err
	}
	h, err := q.head()
	if err != nil {
		return err
	}
	list, err := checkItems(q.Items, "checkpoints", (*checkpointItem).checkpoint)
	if err != nil {
		return err
	}
	err = s.store.PutCheckpoints(r.Context(), &CheckpointBatch{Head: h, Owner: who.User.ID, List: list, Received: time.Now()})
	if err == nil {
		s.metrics.papers(int64(len(list)), 0, 0, 0)
	}
	return s.answerStored(w, r, who, h, len(list), err)
}

// putDocuments is POST /api/documents.
func (s *Server) putDocuments(w http.ResponseWriter, r *http.Request, who Key) error {
	var q struct {
		paperHead
		Items *[]eventItem `json:"events"`
	}
	if err := s.readPapers(w, r, maxPapers, &q); err != nil {
		return err
	}
	h, err := q.head()
	if err != nil {
		return err
	}
	events, err := checkItems(q.Items, "events", (*eventItem).event)
	if err != nil {
		return err
	}
	err = s.store.PutDocuments(r.Context(), &DocumentBatch{Head: h, Owner: who.User.ID, Events: events, Received: time.Now()})
	if err == nil {
		s.metrics.papers(0, int64(len(events)), 0, 0)
	}
	return s.answerStored(w, r, who, h, len(events), err)
}

// checkItems reads a request's items. An error is a refusal that says which one it is about.
func checkItems[I, T any](items *[]I, name string, check func(*I) (T, error)) ([]T, error) {
	if items == nil {
		return nil, badRequest("bad_request", name+" is missing")
	}
	if len(*items) > maxPaperItems {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the request has more than %d items", maxPaperItems)}
	}
	out := make([]T, 0, len(*items))
	for i := range *items {
		x, err := check(&(*items)[i])
		if no, ok := errors.AsType[*refusal](err); ok {
			return nil, &refusal{no.status, no.code, fmt.Sprintf("item %d: %s", i, no.message)}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// offsetAnswer is where an upload goes on.
type offsetAnswer struct {
	Offset    int64 `json:"offset"`
	Complete  *bool `json:"complete,omitempty"`  // of start: nothing needs to be sent
	Forgotten bool  `json:"forgotten,omitempty"` // of start and end: the session was forgotten, the file is not wanted
}

// startBlob is POST /api/blobs/{sha256}/start.
func (s *Server) startBlob(w http.ResponseWriter, r *http.Request, who Key) error {
	u, err := s.readUpload(w, r, who)
	if err != nil {
		return err
	}
	have, complete, err := s.store.StartBlob(r.Context(), u)
	gone := errors.Is(err, ErrForgotten)
	if gone {
		have, complete, err = u.Size, true, nil
	}
	if err != nil {
		return s.refuseUpload(w, err)
	}
	s.announceWishes(w, r, who, u.Head.Machine)
	s.answer(w, http.StatusOK, offsetAnswer{have, &complete, gone})
	return nil
}

func (s *Server) readUpload(w http.ResponseWriter, r *http.Request, who Key) (*Upload, error) {
	var q uploadRequest
	if err := s.readPapers(w, r, maxDocument, &q); err != nil {
		return nil, err
	}
	return q.upload(r.PathValue("sha256"), who.User.ID)
}

// putBlob is PUT /api/blobs/{sha256}?offset=N with the bytes from there on, MaxChunk at most.
func (s *Server) putBlob(w http.ResponseWriter, r *http.Request, who Key) error {
	raw, err := parseSum(r.PathValue("sha256"))
	if err != nil {
		return err
	}
	offset, err := number(r.URL.Query(), "offset", -1)
	if err != nil || offset < 0 {
		return badRequest("bad_query", "offset is not a number from 0")
	}
	src := s.newSource(w, r)
	src.limit(w, r, MaxChunk)
	buf, err := s.bodies.read(r.Context(), src, r.Header.Get("Content-Encoding"), s.large)
	if err != nil {
		return err
	}
	defer s.bodies.release(buf)
	have, err := s.store.PutBlob(r.Context(), who.User.ID, [32]byte(raw), offset, buf.Bytes(), time.Now())
	if err != nil {
		return s.refuseUpload(w, err)
	}
	s.metrics.papers(0, 0, 0, int64(buf.Len()))
	s.answer(w, http.StatusOK, offsetAnswer{Offset: have})
	return nil
}

// endBlob is POST /api/blobs/{sha256}/end.
func (s *Server) endBlob(w http.ResponseWriter, r *http.Request, who Key) error {
	u, err := s.readUpload(w, r, who)
	if err != nil {
		return err
	}
	err = s.store.EndBlob(r.Context(), u)
	gone := errors.Is(err, ErrForgotten)
	if err != nil && !gone {
		return s.refuseUpload(w, err)
	}
	if !gone {
		s.metrics.papers(0, 0, 1, 0)
	}
	s.announceWishes(w, r, who, u.Head.Machine)
	s.answer(w, http.StatusOK, storedAnswer{true, 1, gone})
	return nil
}

// refuseUpload answers an *OffsetError with the offset; other errors go on as they are, or as refusals.
func (s *Server) refuseUpload(w http.ResponseWriter, err error) error {
	switch at, ok := errors.AsType[*OffsetError](err); {
	case ok:
		a := struct {
			Offset int64 `json:"offset"`
			errorAnswer
		}{Offset: at.Have}
		a.Error.Code, a.Error.Message = "wrong_offset", at.Error()
		if at.Wrong {
			a.Error.Code = "wrong_hash"
		}
		s.answer(w, http.StatusConflict, a)
		return nil
	case errors.Is(err, ErrSize):
		return badRequest("wrong_size", ErrSize.Error())
	case errors.Is(err, ErrTooManyUploads):
		return &refusal{http.StatusServiceUnavailable, "busy", ErrTooManyUploads.Error()}
	}
	return err
}
