package api

import (
	"net/http"

	"github.com/ccship/ccship/protocol"
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
