package api

import (
	"context"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/metrics"
)

// showMetrics is GET /metrics, in Prometheus' text format.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) {
	if !s.MetricsOpen {
		if _, err := s.access.Key(r.Context(), s.access.Remote(r), r.Header.Get("X-API-Key")); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	var p metrics.Page
	open, idle := s.conns.Count()
	p.One("ccship_server_info", "gauge", "1, with the version", 1, "version", s.Version)
	p.One("ccship_server_connections", "gauge", "open connections", float64(open))
	p.One("ccship_server_idle_connections", "gauge", "of them without a request", float64(idle))
	p.One("ccship_server_slots_busy", "gauge", "requests worked on", float64(s.slots.Busy()))
	p.One("ccship_server_listeners", "gauge", "clients of /api/events, and pages that follow", float64(s.hub.Listeners()))
	if err := s.measure(r.Context(), &p); err != nil {
		s.refuse(w, r, err)
		return
	}
	s.counts.Write(&p)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = s.write(w, []byte(p.String())) // the client may be gone
}

// measure asks the store.
func (s *Server) measure(ctx context.Context, p *metrics.Page) error {
	lag, err := s.store.Lag(ctx)
	if err != nil {
		return err
	}
	p.One("ccship_server_derive_lag_streams", "gauge", "transcripts with lines not derived from yet", float64(lag))
	store, ok := s.store.(server.Sizer)
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
