package web

import (
	"errors"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
)

// saveView is POST /views with name, page and query: what a page shows, under a name. With remove the view of that name
// is removed, and the page stays as it is.
func (p *homePages) saveView(w http.ResponseWriter, r *http.Request, who server.Login) error {
	f := r.PostForm
	v := server.SavedView{Name: f.Get("name"), Page: f.Get("page"), Query: f.Get("query"), Updated: p.now().UTC()}
	err := v.Tidy()
	switch {
	case err != nil:
	case f.Get("remove") != "":
		err = p.store.RemoveView(r.Context(), who.User.ID, v.Name)
		if errors.Is(err, server.ErrNotFound) {
			err = nil // it is gone, as was asked
		}
	default:
		err = p.store.SaveView(r.Context(), who.User.ID, v)
	}
	if bad, ok := errors.AsType[server.ViewError](err); ok {
		return page.BadRequestError(bad.Error())
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, p.site.Base+v.Path(), http.StatusSeeOther)
	return nil
}
