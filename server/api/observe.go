package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/ccship/ccship/server/auth"
)

// requestID is the context's key for a request's random name.
type requestID struct{}

// observe names every request, counts it and, at debug level, logs it; it never logs content or queries.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()[:12]
		w.Header().Set("X-Request-Id", id)
		r = r.WithContext(context.WithValue(r.Context(), requestID{}, id))
		began := time.Now()
		out := &observed{ResponseWriter: w}
		s.counts.Begin()
		// Deferred, because an answer that is cut short panics.
		defer func() {
			took := time.Since(began)
			s.counts.End(r.Pattern, out.code(), took)
			if s.Log.Enabled(r.Context(), slog.LevelDebug) {
				s.logOf(r).Debug("request", "status", out.code(), "bytes", out.bytes, "took", took)
			}
		}()
		next.ServeHTTP(out, r)
	})
}

// logOf returns the log with what names a request.
func (s *Server) logOf(r *http.Request) *slog.Logger {
	id, _ := r.Context().Value(requestID{}).(string)
	return s.Log.With("request", id, "method", r.Method, "path", auth.LoggedPath(r.URL.Path))
}

// observed records the answer.
type observed struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// WriteHeader notes the status.
func (o *observed) WriteHeader(status int) {
	o.status = cmp.Or(o.status, status)
	o.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (o *observed) Write(b []byte) (int, error) {
	n, err := o.ResponseWriter.Write(b)
	o.bytes += int64(n)
	return n, err
}

func (o *observed) code() int { return cmp.Or(o.status, http.StatusOK) }

// types returns what is compressed: text. Images and files are compressed already or of unknown content, and events
// must reach their reader at once.
func types() []string {
	return []string{
		"text/html", "text/css", "text/javascript", "text/plain", "text/markdown", "image/svg+xml",
		"application/json", "application/x-ndjson", "application/yaml", "application/manifest+json",
	}
}

const (
	least = 1024 // bytes; a shorter answer fits a packet anyway
	level = 3    // of gzip: a page of 500 KB takes 5 ms; higher levels gain a few per cent
	// zstdLevel is the second of four, with a window of 128 KiB: as small as gzip's answers in less time.
	zstdLevel = 2
	// A page that holds both a secret and what a request said would tell the secret by its length. Every length varies by
	// so many bytes.
	jitter = 64
)

// compressAnswers returns h with compressed answers.
func compressAnswers(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.ContentTypes(types()), gzhttp.MinSize(least), gzhttp.CompressionLevel(level),
		gzhttp.ZstdCompressionLevel(zstdLevel), gzhttp.RandomJitter(jitter, 0, false))
	if err != nil {
		return h // the options are constants: a test sees it
	}
	return wrap(h)
}
