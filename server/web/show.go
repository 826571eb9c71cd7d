package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ccship/ccship/server"
)

const showPage = 200

type showData struct {
	server.Session
	Items       []item
	Shown       server.Generation
	Generations []server.Generation
	Epochs      []server.Epoch
	Total       int64
	From        int64
	Prev, Next  string // links; "" for none
	Base        string // link to this stream and generation, to which &from= can be added
	Open        bool
}

// show is one session: entries from ?from on, of ?generation or the newest.
func (v *Viewer) show(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	ref := server.Ref{SessionID: r.PathValue("id"), Epoch: q.Get("epoch")}
	if q.Has("machine") {
		m := q.Get("machine")
		ref.Machine = &m
	}
	data, err := v.read(r.Context(), ref, q)
	if err != nil {
		v.broken(w, err)
		return
	}
	v.render(w, http.StatusOK, "show.html", data)
}

func (v *Viewer) read(ctx context.Context, ref server.Ref, q url.Values) (d showData, err error) {
	snap, err := v.catalog.Open(ctx, ref)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	view, err := pick(snap, q)
	if err != nil {
		return d, err
	}
	d = showData{
		Session: snap.Session(), Shown: view.Generation, Total: view.Total,
		Generations: snap.Generations(), Epochs: snap.Epochs(), Open: v.Open,
	}
	d.From = number(q.Get("from"))
	more := false
	for _, span := range view.Between(d.From, view.Total) {
		err := snap.Lines(ctx, span, func(l server.Line) error {
			if len(d.Items) == showPage {
				more = true
				return errFound
			}
			d.Items = append(d.Items, describe(l))
			return nil
		})
		if err != nil && !errors.Is(err, errFound) {
			return d, err
		}
		if more {
			break
		}
	}
	d.link(more)
	return d, nil
}

// pick is the view of the generation asked for; the newest when that makes no sense.
func pick(snap server.Snapshot, q url.Values) (server.View, error) {
	if s := q.Get("generation"); s != "" {
		if v, err := server.ViewOf(snap.Generations(), number(s)); err == nil {
			return v, nil
		}
	}
	return server.NewestView(snap)
}

func (d *showData) link(more bool) {
	q := url.Values{"machine": {d.Machine}, "epoch": {d.Epoch}}
	path := "/sessions/" + url.PathEscape(d.SessionID)
	d.Base = path + "?" + q.Encode()
	q.Set("generation", strconv.FormatInt(d.Shown.Number, 10))
	if more {
		q.Set("from", strconv.FormatInt(d.Items[len(d.Items)-1].Line+1, 10))
		d.Next = path + "?" + q.Encode()
	}
	if d.From > 0 {
		q.Set("from", strconv.FormatInt(max(0, d.From-showPage), 10))
		d.Prev = path + "?" + q.Encode()
	}
}

// number reads a whole number ≥ 0; anything else is 0.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
