package web

import (
	"context"
	"errors"

	"github.com/ccship/ccship/server"
)

const (
	// pageLines is how many lines of a file one page shows, and pageBytes where it ends before that.
	pageLines = 300
	pageBytes = 4 << 20
	// A page looks around itself: behind its end for results of its calls, before its beginning for calls of its
	// results.
	aroundLines = 200
	aroundBytes = 1 << 20
)

// rawLine is a line as it is stored. Its bytes are a copy.
type rawLine struct {
	server.Line
	Generation int64
}

// window is the stored lines of a view from From to before To.
type window struct {
	Lines    []rawLine
	From, To int64
}

var errFull = errors.New("window full")

// readWindow reads lines from from to before to, until they have more than limit bytes together; the first is read
// whatever it has.
func readWindow(ctx context.Context, snap server.Snapshot, view server.View, from, to int64, limit int) (window, error) {
	w := window{From: from, To: max(from, min(to, view.Total))}
	bytes := 0
	for _, span := range view.Between(w.From, w.To) {
		err := snap.Lines(ctx, span, func(l server.Line) error {
			if bytes += len(l.Raw); bytes > limit && len(w.Lines) > 0 {
				w.To = l.Index
				return errFull
			}
			l.Raw = append([]byte(nil), l.Raw...)
			w.Lines = append(w.Lines, rawLine{l, span.Generation})
			return nil
		})
		if errors.Is(err, errFull) {
			return w, nil
		}
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

// pick is the view of the generation asked for, else of the newest. server.ErrNotFound when there is none of it.
func (s stream) pick(snap server.Snapshot) (server.View, error) {
	if s.Generation >= 0 {
		return server.ViewOf(snap.Generations(), s.Generation)
	}
	return server.NewestView(snap)
}

// open pins the stream that a request names, and the view it asks for, as long as fn runs. What the reader may not see
// is not there.
func (v *Viewer) open(ctx context.Context, who server.Login, s stream, fn func(server.Snapshot, server.View) error) (err error) {
	snap, err := v.store.View(ctx, server.ScopeOf(who.User), s.ref())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	view, err := s.pick(snap)
	if err != nil {
		return err
	}
	return fn(snap, view)
}
