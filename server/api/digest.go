package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/wire"
)

// maxHashes is how many line hashes one call answers.
const maxHashes = 10_000

type digestAnswer struct {
	SessionID   string             `json:"session_id"`
	Machine     string             `json:"machine"`
	Epoch       string             `json:"epoch,omitempty"`
	Epochs      []epochDigest      `json:"epochs,omitzero"`      // newest first, if all are asked for; then nothing below
	Generations []audit.ViewDigest `json:"generations,omitzero"` // left out when single lines are asked for
	// LineHashes is sha256 over each line and its newline, null where nothing is stored.
	LineHashes []*string `json:"line_hashes,omitzero"`
}

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
			a.Generations = slices.DeleteFunc(a.Generations, func(g audit.ViewDigest) bool {
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
