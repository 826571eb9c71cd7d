package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
)

// showMetrics is GET /metrics, in Prometheus' text format.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) {
	// Without a key only by a name of this machine: a web page could have its own name point here (DNS rebinding).
	if !s.MetricsOpen || !protocol.OverSocket(r) && !s.knows(r.Host) {
		if _, err := s.access.Key(r.Context(), s.access.Remote(r), r.Header.Get("X-API-Key")); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	var p metricsPage
	open, idle := s.conns.Count()
	p.One("ccship_server_info", "gauge", "1, with the version", 1, "version", s.Version)
	p.One("ccship_server_connections", "gauge", "open connections", float64(open))
	p.One("ccship_server_idle_connections", "gauge", "of them without a request", float64(idle))
	p.One("ccship_server_slots_busy", "gauge", "requests worked on", float64(s.slots.Busy()))
	in := s.intake.State()
	p.One("ccship_server_ingest_requests", "gauge", "requests with lines that are being stored", float64(in.Requests))
	p.One("ccship_server_ingest_bytes", "gauge", "memory set aside for their bodies", float64(in.Bytes))
	p.One("ccship_server_ingest_live_waiting", "gauge", "requests with new lines that wait", float64(in.Live))
	p.One("ccship_server_ingest_imports_waiting", "gauge", "requests with many lines that wait", float64(in.Imports))
	p.One("ccship_server_listeners", "gauge", "clients of /api/events, and pages that follow", float64(s.hub.Listeners()))
	if err := p.Store(r.Context(), s.store.measured); err != nil {
		s.refuse(w, r, err)
		return
	}
	s.counts.Write(&p)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = s.write(w, []byte(p.String())) // the client may be gone
}

// latencyBounds are the histogram's, in seconds.
var latencyBounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// metricCounts counts what the server does, from its start. Safe for concurrent use.
type metricCounts struct {
	mu       sync.Mutex
	inWork   int64 // guarded by mu, as is all below
	requests map[answered]int64
	latency  map[string]*histogram // by route
	entries  int64
	bytes    int64
	received [4]int64 // checkpoints, document events, files, their bytes
}

// answered is one kind of answer.
type answered struct {
	route string
	code  int
}

type histogram struct {
	counts [len(latencyBounds) + 1]int64
	sum    float64
}

// newMetrics begins counting.
func newMetrics() *metricCounts {
	return &metricCounts{requests: map[answered]int64{}, latency: map[string]*histogram{}}
}

// Begin counts a request that begins.
func (m *metricCounts) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inWork++
}

// End counts an answer. Routes are patterns, of which there are few.
func (m *metricCounts) End(route string, code int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inWork--
	m.requests[answered{route, code}]++
	if strings.HasSuffix(route, "/events") {
		return // as long as the client liked
	}
	h := m.latency[route]
	if h == nil {
		h = &histogram{}
		m.latency[route] = h
	}
	i, _ := slices.BinarySearch(latencyBounds[:], took.Seconds())
	h.counts[i]++
	h.sum += took.Seconds()
}

// Ingested counts stored lines.
func (m *metricCounts) Ingested(b *server.Batch) {
	var bytes int64
	for _, l := range b.Lines {
		bytes += int64(len(l.Raw)) + 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries += int64(len(b.Lines))
	m.bytes += bytes
}

// Artifacts counts checkpoints, document events, whole files and bytes of files.
func (m *metricCounts) Artifacts(counts ...int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, n := range counts {
		m.received[i] += n
	}
}

// Write writes all counts.
func (m *metricCounts) Write(p *metricsPage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.One("ccship_server_requests_in_work", "gauge", "requests begun and not ended", float64(m.inWork))
	p.One("ccship_server_ingested_entries_total", "counter", "entries stored", float64(m.entries))
	p.One("ccship_server_ingested_bytes_total", "counter", "their lines' bytes", float64(m.bytes))
	p.One("ccship_server_ingested_checkpoints_total", "counter", "checkpoints taken", float64(m.received[0]))
	p.One("ccship_server_ingested_document_events_total", "counter", "document events taken", float64(m.received[1]))
	p.One("ccship_server_ingested_files_total", "counter", "files taken whole", float64(m.received[2]))
	p.One("ccship_server_ingested_file_bytes_total", "counter", "bytes of files taken", float64(m.received[3]))
	p.head("ccship_server_requests_total", "counter", "requests answered")
	kinds := slices.SortedFunc(maps.Keys(m.requests), func(a, b answered) int {
		return cmp.Or(strings.Compare(a.route, b.route), a.code-b.code)
	})
	for _, k := range kinds {
		p.value("ccship_server_requests_total", float64(m.requests[k]), "route", k.route, "code", strconv.Itoa(k.code))
	}
	p.head("ccship_server_request_seconds", "histogram", "time to answer a request")
	for _, route := range slices.Sorted(maps.Keys(m.latency)) {
		m.latency[route].write(p, "ccship_server_request_seconds", route)
	}
}

func (h *histogram) write(p *metricsPage, name, route string) {
	var n int64
	for i, bound := range latencyBounds {
		n += h.counts[i]
		p.value(name+"_bucket", float64(n), "route", route, "le", number64(bound))
	}
	n += h.counts[len(latencyBounds)]
	p.value(name+"_bucket", float64(n), "route", route, "le", "+Inf")
	p.value(name+"_sum", h.sum, "route", route)
	p.value(name+"_count", float64(n), "route", route)
}

// metricsPage is metrics as text.
type metricsPage struct{ strings.Builder }

func (p *metricsPage) head(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// One writes a metric of one value.
func (p *metricsPage) One(name, kind, help string, v float64, labels ...string) {
	p.head(name, kind, help)
	p.value(name, v, labels...)
}

// value writes a sample; labels are names and values in turn.
func (p *metricsPage) value(name string, v float64, labels ...string) {
	p.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(labels[i+1])
		fmt.Fprintf(p, `%s%s="%s"`, sep, labels[i], escaped)
	}
	if len(labels) > 0 {
		p.WriteByte('}')
	}
	p.WriteByte(' ')
	p.WriteString(number64(v))
	p.WriteByte('\n')
}

func number64(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// measured is what a store is asked. It may be a server.Sizer too.
type measured interface {
	Lag(ctx context.Context) (int64, error)
	Cold(ctx context.Context) (server.Cold, error)
}

// Store adds what a store knows of itself.
func (p *metricsPage) Store(ctx context.Context, st measured) error {
	lag, err := st.Lag(ctx)
	if err != nil {
		return err
	}
	p.One("ccship_server_derive_lag_streams", "gauge", "transcripts with lines not derived from yet", float64(lag))
	cold, err := st.Cold(ctx)
	if err != nil {
		return err
	}
	p.cold(cold)
	store, ok := st.(server.Sizer)
	if !ok {
		return nil
	}
	sizes, err := store.Sizes(ctx)
	if err != nil {
		return err
	}
	p.One("ccship_server_store_bytes", "gauge", "size of the store", float64(sizes.Bytes))
	p.One("ccship_server_store_streams", "gauge", "transcripts stored", float64(sizes.Streams))
	return nil
}

// cold adds what is known of cold storage, if there is any.
func (p *metricsPage) cold(c server.Cold) {
	if c.Place == "" {
		return
	}
	up := 1.0
	if c.Err != nil {
		up = 0
	}
	p.One("ccship_server_cold_up", "gauge", "1 if cold storage answered when it was used last", up)
	p.One("ccship_server_cold_objects", "gauge", "objects there", float64(c.Objects))
	p.One("ccship_server_cold_bytes", "gauge", "their bytes", float64(c.Bytes))
	p.One("ccship_server_cold_pending", "gauge", "objects being written or removed", float64(c.Pending))
}

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
