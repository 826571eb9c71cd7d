package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

type ingestAnswer struct {
	Success       bool `json:"success"`
	EntriesStored int  `json:"entries_stored"`
	Forgotten     bool `json:"forgotten,omitempty"` // the session was forgotten: nothing of it is stored any more
}

// ingest is POST /api/conversations. It answers once everything is durable.
func (s *Server) ingest(w http.ResponseWriter, r *http.Request, who server.Key) error {
	pass, err := s.intake.Enter(r, who.User.ID, s.Patience)
	if err != nil {
		return err
	}
	defer pass.Leave()
	buf, err := s.bodies.Read(w, r, s.MaxBody)
	if err != nil {
		return err
	}
	defer buf.Release()
	pass.Resize(int64(buf.Len()))
	batch, err := wire.ParseLines(buf.Bytes())
	if err != nil {
		return err
	}
	batch.Received, batch.Owner, batch.Quota = time.Now(), who.User.ID, s.Quota.For(who.User)
	if batch.Head.Writer, err = writerOf(r); err != nil {
		return err
	}
	// A bare client that sends no lines changes nothing; with the extension that is a rewind.
	if len(batch.Lines) > 0 || batch.Head.Epoch != "" {
		err := s.store.writes.Put(r.Context(), batch)
		if errors.Is(err, server.ErrForgotten) {
			s.announceLinkRequests(w, r, who, batch.Head.Machine)
			// Acknowledge, so that the client continues with other sessions.
			s.answer(w, http.StatusOK, ingestAnswer{Success: true, Forgotten: true})
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.counts.Ingested(batch)
	announceLedger(w, batch.Head.Receipt)
	s.announceLinkRequests(w, r, who, batch.Head.Machine)
	s.answer(w, http.StatusOK, ingestAnswer{Success: true, EntriesStored: len(batch.Lines)})
	return nil
}

// readItems reads a request of checkpoints or documents.
func readItems[B any](s *Server, w http.ResponseWriter, r *http.Request,
	parse func([]byte) (B, error)) (b B, err error) {
	body, err := s.bodies.Read(w, r, wire.MaxItemsBody)
	if err != nil {
		return b, err
	}
	defer body.Release()
	return parse(body.Bytes())
}

type storedAnswer struct {
	Success   bool `json:"success"`
	Stored    int  `json:"stored"`
	Forgotten bool `json:"forgotten,omitempty"` // the session was forgotten: nothing of it is stored any more
}

// answerStored acknowledges n items, also those of a forgotten session, so that the client continues with other
// sessions.
func (s *Server) answerStored(w http.ResponseWriter, r *http.Request, who server.Key, h server.Head, n int,
	err error) error {
	gone := errors.Is(err, server.ErrForgotten)
	if err != nil && !gone {
		return err
	}
	if gone {
		n = 0
	}
	announceLedger(w, h.Receipt)
	s.announceLinkRequests(w, r, who, h.Machine)
	s.answer(w, http.StatusOK, storedAnswer{true, n, gone})
	return nil
}
