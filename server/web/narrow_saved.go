package web

import (
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
)

// saved is the views that the reader has saved, and what can be done with the current page: saved under a name, or, if
// it shows a saved view, removed.
type saved struct {
	Views []page.Choice
	Page  string // server.SessionsPage or server.SearchPage
	Query string // of the page; "": it filters nothing, so it can't be saved
	Name  string // of the saved view that the page shows
}

// readSaved reads a user's views for what a page of a site at base shows with a query.
func readSaved(r *http.Request, st server.SavedViews, reader int64, base, of string) (s saved, err error) {
	q := r.URL.Query()
	list, err := st.SavedViews(r.Context(), reader)
	if err != nil {
		return s, err
	}
	this := server.SavedView{Name: "this", Page: of, Query: q.Encode()}
	if s.Page = of; this.Tidy() == nil {
		s.Query = this.Query
	}
	for _, v := range list {
		on := v.Is(of, q)
		if on {
			s.Name = v.Name
		}
		s.Views = append(s.Views, page.Choice{Name: v.Name, On: on, URL: base + v.Path()})
	}
	return s, nil
}
