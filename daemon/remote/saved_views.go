package remote

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// SavedView is a list of sessions, or a search, that the key's user has saved under a name.
type SavedView struct {
	Name    string    `json:"name"`
	Page    string    `json:"page"`  // "sessions" or "search"
	Query   string    `json:"query"` // of the page's address
	URL     string    `json:"url"`
	API     string    `json:"api"` // path and query of the call that answers the same, as of now
	Updated time.Time `json:"updated"`
}

// SavedViews lists the views, by name. Days that they name are meant in the zone of now.
func (k Keeper) SavedViews(ctx context.Context, now time.Time) ([]SavedView, error) {
	var a struct {
		Views []SavedView `json:"views"`
	}
	err := k.Client.get(ctx, "/api/views", url.Values{"zone": {now.Format("Z07:00")}}, &a)
	return a.Views, err
}

// SaveView keeps a view instead of the one of that name, and returns it as the server keeps it.
func (k Keeper) SaveView(ctx context.Context, name, page string, q url.Values) (v SavedView, err error) {
	body := struct {
		Page  string `json:"page"`
		Query string `json:"query"`
	}{page, q.Encode()}
	return v, k.Client.document(ctx, http.MethodPut, "/api/views/"+url.PathEscape(name), nil, body, &v)
}

// RemoveView removes a view.
func (k Keeper) RemoveView(ctx context.Context, name string) error {
	var gone struct{}
	return k.Client.document(ctx, http.MethodDelete, "/api/views/"+url.PathEscape(name), nil, nil, &gone)
}
