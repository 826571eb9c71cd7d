package server

import (
	"errors"
	"net/http"
	"time"
)

type ingestAnswer struct {
	Success       bool `json:"success"`
	EntriesStored int  `json:"entries_stored"`
	Forgotten     bool `json:"forgotten,omitempty"` // the session was forgotten: nothing of it is stored any more
}

// ingest is POST /api/conversations. It answers once everything is durable.
func (s *Server) ingest(w http.ResponseWriter, r *http.Request, who Key) error {
	buf, err := s.bodies.read(r.Context(), s.newSource(w, r), r.Header.Get("Content-Encoding"), s.large)
	if err != nil {
		return err
	}
	defer s.bodies.release(buf)
	batch, err := parseRequest(buf.Bytes())
	if err != nil {
		return err
	}
	batch.Received, batch.Owner = time.Now(), who.User.ID
	// A bare client that sends nothing has nothing to say; with the extension that is a rewind.
	if len(batch.Lines) > 0 || batch.Head.Epoch != "" {
		err := s.store.Put(r.Context(), batch)
		if errors.Is(err, ErrForgotten) {
			s.announceWishes(w, r, who, batch.Head.Machine)
			// An acknowledgement, so that the client goes on to what is still wanted.
			s.answer(w, http.StatusOK, ingestAnswer{Success: true, Forgotten: true})
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.metrics.ingested(batch)
	s.announceWishes(w, r, who, batch.Head.Machine)
	s.answer(w, http.StatusOK, ingestAnswer{Success: true, EntriesStored: len(batch.Lines)})
	return nil
}
