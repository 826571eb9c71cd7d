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
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return server.ErrNotFound
	}
	var kind string
	var picture []byte
	_, err = v.readLine(r, who, func(l server.Line) (err error) {
		kind, picture, err = thread.Decoded(l, n)
		return err
	})
	if err == nil {
		page.WriteImage(w, kind, picture)
	}
	return err
}
