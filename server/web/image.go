package web

import (
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/thread"
)

// image is GET /sessions/{id}/image/{line}/{n}: an image of a line. Its own policy makes it harmless even when it is
// opened alone.
func (v *Viewer) image(w http.ResponseWriter, r *http.Request, who server.Login) error {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return server.ErrNotFound
	}
	l, _, err := v.readLine(r, who, false)
	if err != nil {
		return err
	}
	list := thread.Images(l.Line)
	if n < 0 || n >= len(list) {
		return server.ErrNotFound
	}
	kind := thread.ImageType(list[n])
	if kind == "" {
		return server.ErrNotFound
	}
	b, err := thread.DecodeImage(list[n].Data)
	if err != nil {
		return server.ErrNotFound
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // the browser may be gone
	return nil
}
