package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/thread"
)

// maxFinds is how many lines of a conversation a search in it lists.
const maxFinds = 40

// finder is the search in one conversation: its form, and what was found.
type finder struct {
	Fields []field // that the form sends besides
	Text   string
	Hits   []foundLine
	Count  int64
	More   bool
	Close  string
}

// field is a field of a form that readers do not see.
type field struct{ Name, Value string }

// asForm returns an address as the action of a form, and the fields that it sends besides its own.
func asForm(address string) (action string, fields []field) {
	action, query, _ := strings.Cut(address, "?")
	values, _ := url.ParseQuery(query) // it was encoded here
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fields = append(fields, field{name, values.Get(name)})
	}
	return action, fields
}

// findIn looks for the words that a request asks for in its conversation, agents apart.
func (v *Viewer) findIn(r *http.Request, who server.Login, p *conversationPage) error {
	f := &p.Find
	f.Text = strings.TrimSpace(r.URL.Query().Get("find"))
	_, f.Fields = asForm(p.Stream.Path("", "mode", p.Mode.Param()))
	if f.Text == "" {
		return nil
	}
	f.Close = v.Base + p.Stream.Path("", "mode", p.Mode.Param())
	hits, err := v.store.Search(r.Context(), server.ScopeOf(who.User), server.SearchQuery{Text: f.Text,
		Session: p.S.SessionID, User: p.S.Owner, Machine: &p.S.Machine, Limit: maxFinds})
	if err != nil {
		return err
	}
	for _, h := range hits.List {
		if h.Session.ID == p.S.ID {
			f.Hits = append(f.Hits, foundLine{h, inlineSnippet(h.Snippet),
				v.Base + thread.StreamOf(h.Session).LinePath(h.Line)})
		}
	}
	f.Count, f.More = int64(len(f.Hits)), hits.Next != ""
	return nil
}
