package limit

import (
	"fmt"
	"net/http"
	"time"
)

// eventPatience is how long a listener may take to read one event.
const eventPatience = 10 * time.Second

// Events is an answer of server-sent events.
type Events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// NewEvents begins an answer.
func NewEvents(w http.ResponseWriter) Events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events to itself
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // not every writer has deadlines (tests)
	return Events{w, c}
}

// Send writes an event or a comment, with a time limit.
func (e Events) Send(text string) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(eventPatience))
	if _, err := e.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return e.control.Flush()
}
