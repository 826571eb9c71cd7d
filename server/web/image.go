package web

import (
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// image is GET /sessions/{id}/image/{line}/{n}: an image of a line.
func (v *Viewer) image(w http.ResponseWriter, r *http.Request, who server.Login) error {
	return answerImage(w, r, func(fn func(server.Snapshot, server.View) error) error {
		return v.open(r.Context(), who, requested(r), fn)
	})
}

// answerImage answers with the image that a request names, of the session that open opens.
func answerImage(w http.ResponseWriter, r *http.Request,
	open func(func(server.Snapshot, server.View) error) error) error {
	line, err := number(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return server.ErrNotFound
	}
	var kind string
	var picture []byte
	err = open(func(snap server.Snapshot, view server.View) error {
		return thread.ReadLine(r.Context(), snap, view, line, func(l server.Line) (err error) {
			kind, picture, err = thread.Decoded(l, n)
			return err
		})
	})
	if err == nil {
		page.WriteImage(w, kind, picture)
	}
	return err
}
