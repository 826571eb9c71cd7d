package api

import (
	"encoding/json"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/recall"
	"github.com/ccship/ccship/server/wire"
	"github.com/ccship/ccship/transcript/provenance"
)

// whyRequest has what commits add. Lines are hashes of their texts: the server learns no text.
type whyRequest struct {
	Commits provenance.Commits `json:"commits"`
}

type whyAnswer struct {
	Commits []provenance.Answer `json:"commits"`
}

// maxWhy limits a question, in bytes.
const maxWhy = 8 << 20

// why is GET /api/why?q&lines, and POST for what does not fit into an address: which sessions wrote the lines of
// commits, and for which prompts. POST notes at sessions what they wrote of the commits.
func (s *Server) why(w http.ResponseWriter, r *http.Request, who server.Key) error {
	f := newQuery(r.URL.Query(), nil)
	each := f.Text("lines") == "1"
	var q whyRequest
	if text := f.Text("q"); r.Method != http.MethodGet {
		if err := readBody(w, r, maxWhy, &q); err != nil {
			return err
		}
	} else if err := json.Unmarshal([]byte(text), &q); err != nil {
		f.Fail("q", "what POST takes, as JSON")
		return f.Err
	}
	ask := recall.WhyQuery{Commits: q.Commits, Lines: each, URL: s.lineURL(r), Share: r.Method == http.MethodPost}
	if err := ask.Check(); err != nil {
		return wire.BadRequest("bad_request", err.Error())
	}
	names := namesOf{}
	users := func(owner int64) string {
		_ = s.learn(r.Context(), names, owner) // "" for a name that cannot be read
		return names[owner]
	}
	answers, shares, err := recall.Why(r.Context(), s.store.recall, server.ScopeOf(who.User), users, ask)
	if err != nil {
		return err
	}
	// An answer is worth more than that it is noted.
	if err := s.store.recall.KeepCommits(r.Context(), shares); err != nil {
		s.logOf(r).Warn("commits are not noted at their sessions", "error", err)
	}
	s.answer(w, http.StatusOK, whyAnswer{orEmpty(answers)})
	return nil
}
