package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/ccship/ccship/server"
)

const (
	listPage = 50
	// titleLines is how far into a session its title is looked for.
	titleLines = 60
)

type listData struct {
	Rows  []listRow
	First bool // the newest page
	Next  string
	Open  bool
}

type listRow struct {
	server.Session
	Title string
	Agent bool
}

// list shows the sessions, the one heard last on top.
func (v *Viewer) list(w http.ResponseWriter, r *http.Request) {
	after := r.URL.Query().Get("after")
	found, err := v.catalog.Sessions(r.Context(), server.Page{After: after, Limit: listPage, Recent: true})
	if errors.Is(err, server.ErrBadPage) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if err != nil {
		v.broken(w, err)
		return
	}
	data := listData{First: after == "", Next: found.Next, Open: v.Open}
	for _, x := range found.List {
		title, err := v.title(r.Context(), x)
		if err != nil {
			v.broken(w, err)
			return
		}
		data.Rows = append(data.Rows, listRow{Session: x, Title: title, Agent: x.Parent != ""})
	}
	v.render(w, http.StatusOK, "list.html", data)
}

var errFound = errors.New("found")

// title is the session's own title, else what its human said first, else "".
func (v *Viewer) title(ctx context.Context, x server.Session) (title string, err error) {
	snap, err := v.catalog.Open(ctx, server.Ref{SessionID: x.SessionID, Machine: &x.Machine, Epoch: x.Epoch})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	view, err := server.NewestView(snap)
	if err != nil {
		return "", err
	}
	for _, span := range view.Between(0, titleLines) {
		err := snap.Lines(ctx, span, func(l server.Line) error {
			if title = titleOf(l); title != "" {
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			return title, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}
