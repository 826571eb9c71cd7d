package show

import (
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// contactTrouble says what is wrong with a server that nothing may be waiting for; "" when all are well.
func (v View) contactTrouble(s control.Status) string {
	for _, srv := range s.Servers {
		if !unwell(srv) {
			continue
		}
		who := "the server"
		if len(s.Servers) > 1 {
			who = srv.URL
		}
		return who + " " + v.silence(srv)
	}
	return ""
}

func unwell(srv control.Server) bool { return srv.State == "retrying" || srv.State == "refused" }

// silence returns what a server that is not well does, or since when it does nothing.
func (v View) silence(srv control.Server) string {
	switch {
	case srv.Kind != control.CodeUnreachable:
		return trouble(srv, "rejects what is sent")
	case srv.LastContactAt == nil:
		return "does not answer"
	}
	return "has not answered since " + v.clock(*srv.LastContactAt)
}

// clock returns a time of the day; of another day, with its date.
func (v View) clock(t time.Time) string {
	zone := v.Zone
	if zone == nil {
		zone = v.Now.Location()
	}
	t = t.In(zone)
	if t.Format(time.DateOnly) == v.Now.In(zone).Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// reachable says since when nobody knows whether a server that was well still is; it never means now without an answer.
func (v View) reachable(srv control.Server) string {
	if at := srv.LastContactAt; at != nil && v.Now.Sub(*at) > control.ContactFresh {
		return "reachable " + amount.Ago(v.Now, *at)
	}
	return "reachable"
}

// lineContact returns what the line says about the server, with the age of what it knows, when nothing waits; "" when
// that is fresh.
func (v View) lineContact(s control.Status) (text string, trouble bool) {
	if s.State != "watching" || len(s.Servers) == 0 {
		return "", false
	}
	srv := s.Servers[0] // the user's own is the first
	for _, other := range s.Servers {
		if unwell(other) {
			srv = other
			break
		}
	}
	at := srv.LastContactAt
	switch {
	case unwell(srv):
		text = "server " + v.silence(srv)
		if srv.Probe != nil {
			text += ", asked " + amount.Ago(v.Now, srv.Probe.At)
		}
		return text, true
	case srv.State == "unknown":
		return "server not asked yet", false
	case at != nil && v.Now.Sub(*at) > control.ContactFresh:
		return "server answered " + amount.Ago(v.Now, *at), false
	}
	return "", false
}
