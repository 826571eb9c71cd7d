package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

const (
	heartbeat = 20 * time.Second
	// patience is how long a browser may take to read one message.
	patience = 10 * time.Second
)

// changeEvent is a change as pages receive it.
type changeEvent struct {
	About      string `json:"about,omitempty"` // "checkpoints", "documents"; else lines
	Session    string `json:"session"`
	Machine    string `json:"machine"`
	Owner      int64  `json:"owner"`
	Generation int64  `json:"generation"`
	From       int64  `json:"from"`
	To         int64  `json:"to"`
}

// events is GET /events?session&machine&owner: server-sent events that say where there are new lines, of one session
// or of all that the reader may see. {} says that anything may have changed.
func (v *Viewer) events(w http.ResponseWriter, r *http.Request, who server.Login) error {
	if v.Hub == nil {
		return server.ErrNotFound
	}
	sight, err := v.access.Sight(r.Context(), func(context.Context) (server.User, error) {
		l, err := v.accounts.Login(r)
		return l.User, err
	})
	if err != nil {
		return err
	}
	leave, err := v.Hub.Admit(who.User.ID)
	if err != nil {
		return err
	}
	defer leave()
	q := r.URL.Query()
	owner := page.Number(q.Get(thread.UserParam), 0)
	changes := v.Hub.Listen(r.Context(), func(c server.Change) bool {
		return sight.Sees(c) && (!q.Has("session") || c.SessionID == q.Get("session") && c.Machine == q.Get("machine") &&
			(owner == 0 || c.Owner == owner))
	})
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // not every writer has deadlines (tests)
	s := sender{w, c}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	err = s.send(": hello\nretry: 3000\n\n")
	for err == nil {
		select {
		case change, more := <-changes:
			if !more {
				return nil
			}
			var may bool
			if may, err = sight.May(r.Context(), change); may {
				err = s.change(change)
			}
		case <-beat.C:
			if err = sight.Check(r.Context()); err == nil {
				err = s.send(": \n\n")
			}
		}
	}
	return nil // the answer has begun: an error page is no longer possible
}

type sender struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func (s sender) send(message string) error {
	_ = s.c.SetWriteDeadline(time.Now().Add(patience)) // not every writer has deadlines (tests)
	if _, err := s.w.Write([]byte(message)); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return s.c.Flush()
}

func (s sender) change(c server.Change) error {
	if c.Stream == 0 {
		return s.send("data: {}\n\n")
	}
	b, err := json.Marshal(changeEvent{c.About, c.SessionID, c.Machine, c.Owner, c.Generation, c.From, c.To})
	if err != nil {
		return err
	}
	return s.send("data: " + string(b) + "\n\n")
}
