package web

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

const heartbeat = 20 * time.Second

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
	to := limit.NewEvents(w)
	if to.Send(": hello\nretry: 3000\n\n") != nil {
		return nil // gone: the answer has begun, and an error page is no longer possible
	}
	sight.Follow(r.Context(), changes, heartbeat, func(c server.Change) error { return sendChange(to, c) },
		func() error { return to.Send(": \n\n") })
	return nil
}

func sendChange(to limit.Events, c server.Change) error {
	if c.Stream == 0 {
		return to.Send("data: {}\n\n")
	}
	b, err := json.Marshal(changeEvent{c.About, c.SessionID, c.Machine, c.Owner, c.Generation, c.From, c.To})
	if err != nil {
		return err
	}
	return to.Send("data: " + string(b) + "\n\n")
}
