package api

import (
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"unicode/utf8"
)

// sniffed is how many bytes of a file are checked to distinguish text from binary data.
const sniffed = 64 << 10

// serveFile sends a user's file so that browsers never interpret it: as text or bytes, whatever its type, to be saved
// instead of shown, and with a policy that permits nothing if it is shown nevertheless.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string, size int64, content io.Reader) error {
	first := make([]byte, min(size, sniffed))
	if _, err := io.ReadFull(content, first); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if isText(first, size) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	err := s.write(w, first)
	buf := make([]byte, rawChunk)
	for rest := size - int64(len(first)); err == nil && rest > 0; {
		n := min(rest, rawChunk)
		if _, err = io.ReadFull(content, buf[:n]); err == nil {
			err = s.write(w, buf[:n])
		}
		rest -= n
	}
	if err != nil {
		// The status has been sent: only closing the connection can report the error now.
		s.logOf(r).Error("answer cut short", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// isText says whether bytes, the first of size, are UTF-8 without NUL. The last character may be cut.
func isText(b []byte, size int64) bool {
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		if c == 0 || c == utf8.RuneError && n == 1 {
			return int64(len(b)) < utf8.UTFMax && size > sniffed && !utf8.FullRune(b)
		}
		b = b[n:]
	}
	return true
}
