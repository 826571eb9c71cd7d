package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

// maxDigests is how many streams one request may ask for.
const maxDigests = 1000

func newDigestAnswer(snap server.Snapshot) protocol.Digest {
	x := snap.Session()
	return protocol.Digest{SessionID: x.SessionID, Machine: x.Machine, Epoch: x.Epoch}
}

// digestEpochs digests all generations of all epochs of a stream, one epoch after the other, each at one moment.
func (s *Server) digestEpochs(r *http.Request, who server.Key, ref server.Ref) (protocol.Digest, error) {
	var a protocol.Digest
	ref.Epoch = ""
	var epochs []server.Epoch
	err := s.view(r, who, ref, func(_ context.Context, snap server.Snapshot) error {
		a = newDigestAnswer(snap)
		a.Epoch = ""
		epochs = snap.Epochs()
		ref.Stream = snap.Session().ID
		return nil
	})
	if err != nil {
		return a, err
	}
	for _, e := range epochs {
		ref.Epoch = e.Name
		err := s.view(r, who, ref, func(ctx context.Context, snap server.Snapshot) error {
			generations, err := audit.DigestViews(ctx, snap)
			a.Epochs = append(a.Epochs, protocol.EpochDigest{Epoch: e.Name, Generations: generations})
			return err
		})
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// digestError replaces the digest of a stream that cannot be read.
type digestError struct {
	SessionID string  `json:"session_id"`
	Machine   *string `json:"machine"`
	Error     struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// digests is POST /api/digests {sessions:[{session_id, user, machine, epoch}], epochs}: what /digest answers, for many
// streams in one answer, in the order asked for. It is sent as it is computed; a stream that can't be read has an
// error in its place.
func (s *Server) digests(w http.ResponseWriter, r *http.Request, who server.Key) error {
	var q protocol.DigestRequest
	if err := s.readBody(w, r, maxDocument, &q); err != nil {
		return err
	}
	if len(q.Sessions) > maxDigests {
		return wire.BadRequest("bad_request", fmt.Sprintf("sessions has more than %d elements", maxDigests))
	}
	if q.Epochs != "" && q.Epochs != "all" {
		return wire.BadRequest("bad_request", `epochs is neither "" nor "all"`)
	}
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	separator := `{"digests":[`
	for _, x := range q.Sessions {
		if x.User == auth.Me {
			x.User = who.User.Name
		}
		ref := server.Ref{SessionID: x.SessionID, User: x.User, Machine: x.Machine, Epoch: x.Epoch}
		a, err := s.digestOne(r, who, ref, q.Epochs == "all")
		if err != nil {
			return s.cut(r, err)
		}
		b, err := json.Marshal(a)
		if err != nil {
			return s.cut(r, err)
		}
		if err := s.write(w, append([]byte(separator+"\n"), b...)); err != nil {
			return s.cut(r, err)
		}
		_ = control.Flush()
		separator = ","
	}
	if len(q.Sessions) == 0 {
		separator = `{"digests":[]}`
	} else {
		separator = "\n]}"
	}
	if err := s.write(w, []byte(separator+"\n")); err != nil {
		return s.cut(r, err)
	}
	return nil
}

// cut aborts a response whose status has been sent: only closing the connection can report the error now.
func (s *Server) cut(r *http.Request, err error) error {
	s.logOf(r).Error("answer cut short", "error", err)
	panic(http.ErrAbortHandler)
}

// digestOne returns a stream's digests, or the error that replaces them.
func (s *Server) digestOne(r *http.Request, who server.Key, ref server.Ref, all bool) (any, error) {
	var a protocol.Digest
	var err error
	if all {
		a, err = s.digestEpochs(r, who, ref)
	} else {
		err = s.view(r, who, ref, func(ctx context.Context, snap server.Snapshot) (err error) {
			a = newDigestAnswer(snap)
			a.Generations, err = audit.DigestViews(ctx, snap)
			return err
		})
	}
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	if err == nil {
		return a, nil
	}
	no := digestError{SessionID: ref.SessionID, Machine: ref.Machine}
	if errors.Is(err, server.ErrNotFound) {
		no.Error.Code, no.Error.Message = "not_found", err.Error()
	} else {
		_, no.Error.Code, no.Error.Message = s.explain(r, err)
	}
	return no, nil
}

// maxHashes is how many line hashes one call answers.
const maxHashes = 10_000

// digest is GET /api/sessions/{id}/digest?generation&from&to&machine&epoch&epochs: the digests of all generations, or
// of the named one. With from or to it returns the hashes of those lines instead, so that a page costs its own lines
// and not the whole stream; with epochs=all, the digests of all generations of all epochs. It computes everything from
// the stored bytes.
func (s *Server) digest(w http.ResponseWriter, r *http.Request, who server.Key) error {
	q := r.URL.Query()
	f := newQuery(q, nil)
	all := f.OneOf("epochs", "one", "all") == "all"
	if f.Err != nil {
		return f.Err
	}
	if all {
		a, err := s.digestEpochs(r, who, refOf(r))
		if err != nil {
			return err
		}
		s.answer(w, http.StatusOK, a)
		return nil
	}
	return s.read(w, r, who, func(ctx context.Context, snap server.Snapshot) (any, error) {
		a := newDigestAnswer(snap)
		v, err := pickView(q, snap)
		if err != nil {
			return nil, err
		}
		if q.Has("from") || q.Has("to") {
			a.LineHashes, err = lineHashes(ctx, snap, v, q)
		} else if a.Generations, err = audit.DigestViews(ctx, snap); q.Has("generation") {
			a.Generations = slices.DeleteFunc(a.Generations, func(g protocol.ViewDigest) bool {
				return g.Generation != v.Generation.Number
			})
		}
		return a, err
	})
}

// lineHashes hashes the lines that the query asks for.
func lineHashes(ctx context.Context, snap server.Snapshot, v server.View, q url.Values) ([]*string, error) {
	from, err := numberOf(q, "from", 0)
	if err != nil {
		return nil, err
	}
	to, err := numberOf(q, "to", min(from+maxHashes, max(v.Total, from)))
	if err != nil {
		return nil, err
	}
	if to < from || to-from > maxHashes {
		return nil, wire.BadRequest("bad_query", fmt.Sprintf("from and to are at most %d lines apart", maxHashes))
	}
	return audit.LineHashes(ctx, snap, v, from, to)
}

var newline = []byte{'\n'}
