package page

import (
	"net"
	"net/http"
	"strings"
	"time"
)

// policy restricts a page to its own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Harden sets headers that keep a browser from doing more than showing the page.
func (s *Site) Harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "private, no-store")
		next.ServeHTTP(Patient{w}, r)
	})
}

const (
	// piece is how much is written at once, and pieceTime how long a reader may take for it.
	piece     = 256 << 10
	pieceTime = 30 * time.Second
)

// Patient gives the reader of an answer time for each piece of it, not for the whole: one that stops reading loses the
// connection.
type Patient struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (p Patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p Patient) Write(b []byte) (n int, err error) {
	c := http.NewResponseController(p.ResponseWriter)
	for err == nil && len(b) > 0 {
		_ = c.SetWriteDeadline(time.Now().Add(pieceTime)) // not every writer has deadlines (tests)
		var m int
		m, err = p.ResponseWriter.Write(b[:min(len(b), piece)])
		n, b = n+m, b[m:]
	}
	return n, err
}

// IsLoopback reports whether a host, with or without port, is a loopback name or address.
func IsLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
