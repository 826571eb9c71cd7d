package page

import "net/http"

// Counted is a writer that counts the bytes of answers which are in memory as a whole until their reader has taken
// them.
type Counted struct {
	http.ResponseWriter
	// Hold counts so many bytes until release is called; its error says that there is no space for them.
	Hold func(bytes int64) (release func(), err error)
}

// Unwrap is for http.ResponseController.
func (c Counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// small is the longest answer that is not counted, in bytes: about what the connection takes at once.
const small = 64 << 10

// Whole writes an answer that is in memory. One for which a Counted has no space is refused at once: one that waited
// would be in memory, too.
func Whole(w http.ResponseWriter, status int, body []byte) {
	if c, ok := w.(Counted); ok && len(body) > small {
		release, err := c.Hold(int64(len(body)))
		if err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "The server holds as much as it may for readers who have not taken it yet. Reload in a moment.",
				http.StatusServiceUnavailable)
			return
		}
		defer release()
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the browser may be gone
}
