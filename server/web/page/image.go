package page

import (
	"net/http"
	"strconv"
)

// WriteImage answers with an image. Its own policy makes it harmless even when it is opened alone.
func WriteImage(w http.ResponseWriter, kind string, image []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Length", strconv.Itoa(len(image)))
	Whole(w, http.StatusOK, image)
}
