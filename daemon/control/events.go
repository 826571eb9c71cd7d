package control

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	eventBeat = 15 * time.Second // between two lines of a stream in which nothing happens
	eventWait = 10 * time.Second // for a reader to take a line; one that does not is cut off
)

// events streams what happens, as server-sent events, until the caller goes, is too slow, or the daemon stops.
func (s *Endpoint) events(w http.ResponseWriter, r *http.Request) {
	events, err := s.daemon.Events(r.Context())
	if err != nil {
		s.fail(w, asError(err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	beat := time.NewTicker(eventBeat)
	defer beat.Stop()
	for {
		text := ":\n\n"
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			line, err := json.Marshal(e)
			if err != nil {
				s.log.Error("write event", "err", err)
				return
			}
			text = fmt.Sprintf("event: %s\ndata: %s\n\n", e.Type, line)
		case <-beat.C:
		case <-r.Context().Done():
			return
		}
		// A deadline that cannot be set is none of net/http's own connections.
		_ = out.SetWriteDeadline(time.Now().Add(eventWait))
		if _, err := w.Write([]byte(text)); err != nil || out.Flush() != nil {
			return
		}
	}
}
