package server

import (
	"net/http"
	"time"
)

type ingestAnswer struct {
	Success       bool `json:"success"`
	EntriesStored int  `json:"entries_stored"`
}

// ingest is POST /api/conversations. It answers once everything is durable.
func (s *Server) ingest(w http.ResponseWriter, r *http.Request) error {
	buf, err := s.bodies.read(w, r, s.MaxBody, s.large)
	if err != nil {
		return err
	}
	defer s.bodies.release(buf)
	batch, err := parseRequest(buf.Bytes())
	if err != nil {
		return err
	}
	batch.Received = time.Now()
	// A bare client that sends nothing has nothing to say; with the extension that is a rewind.
	if len(batch.Lines) > 0 || batch.Head.Epoch != "" {
		if err := s.store.Put(r.Context(), batch); err != nil {
			return err
		}
	}
	s.answer(w, http.StatusOK, ingestAnswer{Success: true, EntriesStored: len(batch.Lines)})
	return nil
}
