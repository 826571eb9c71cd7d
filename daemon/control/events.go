package control

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	eventBeat = 15 * time.Second // between two lines of a stream without events
	eventWait = 10 * time.Second // for a reader to take a line; then it is disconnected
)

// events streams events as server-sent events until the caller leaves, is too slow, or the daemon stops.
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
		// Only connections that net/http did not make cannot set a deadline.
		_ = out.SetWriteDeadline(time.Now().Add(eventWait))
		if _, err := w.Write([]byte(text)); err != nil || out.Flush() != nil {
			return
		}
	}
}
