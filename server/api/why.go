package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/recall"
	"github.com/ccship/ccship/server/wire"
	"github.com/ccship/ccship/transcript/provenance"
)

// whyRequest has what commits add. Lines are hashes of their texts: the server learns no text.
type whyRequest struct {
	Commits []provenance.Commit `json:"commits"`
}

type whyAnswer struct {
	Commits []provenance.Answer `json:"commits"`
}

// maxWhyCommits is how many commits one request may ask about.
const maxWhyCommits = 500

// maxWhy limits a question, in bytes.
const maxWhy = 8 << 20

// why is GET /api/why?q&lines, and POST for what does not fit into an address: which sessions wrote the lines of
// commits, and for which prompts.
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
	lines := 0
	for _, c := range q.Commits {
		for _, x := range c.Files {
			lines += len(x.Lines) + len(x.Paths)
			if len(x.Paths) == 0 {
				return wire.BadRequest("bad_request", "a file has no path")
			}
		}
	}
	if len(q.Commits) > maxWhyCommits || lines > recall.MaxWhyLines {
		return wire.BadRequest("bad_request", fmt.Sprintf("more than %d commits, or %d lines: ask about fewer at once",
			maxWhyCommits, recall.MaxWhyLines))
	}
	names := namesOf{}
	users := func(owner int64) string {
		if _, known := names[owner]; !known {
			some, err := s.store.UserNames(r.Context(), []int64{owner})
			if err != nil {
				return ""
			}
			names[owner] = some[owner]
		}
		return names[owner]
	}
	answers, err := recall.Why(r.Context(), s.store, server.ScopeOf(who.User), users,
		recall.WhyQuery{Commits: q.Commits, Lines: each, URL: s.lineURL(r)})
	if err != nil {
		return err
	}
	if answers == nil {
		answers = []provenance.Answer{}
	}
	s.answer(w, http.StatusOK, whyAnswer{answers})
	return nil
}
