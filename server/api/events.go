package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/wire"
)

// defaultBeat keeps proxies from closing a quiet connection. At each beat the key is checked again, and before each
// change of another user what is shared.
const defaultBeat = 15 * time.Second

// eventAnswer says that lines were stored.
type eventAnswer struct {
	SessionID   string    `json:"session_id"`
	User        string    `json:"user"`
	Machine     string    `json:"machine"`
	ProjectHash string    `json:"project_hash"`
	Generation  int64     `json:"generation"`
	From        int64     `json:"from_line"`
	To          int64     `json:"to_line"` // before it
	At          time.Time `json:"at"`
}

// artifactEvent announces stored checkpoints or documents.
type artifactEvent struct {
	SessionID   string    `json:"session_id"`
	User        string    `json:"user"`
	Machine     string    `json:"machine"`
	ProjectHash string    `json:"project_hash"`
	At          time.Time `json:"at"`
}

// events is GET /api/events?session&project&machine&user: server-sent events for as long as the client listens.
// "change" has the position of stored lines; "checkpoints" and "documents" announce such artifacts; "missed" means that
// anything may have changed: the client was too slow or reconnected with a Last-Event-ID, and missed events are not
// kept. Events have no content.
func (s *Server) events(w http.ResponseWriter, r *http.Request, who server.Key) error {
	f := s.filter(r)
	wanted := wantedChanges(f)
	if f.Err != nil {
		return f.Err
	}
	sight, err := s.access.Sight(r.Context(), func(ctx context.Context) (server.User, error) {
		key, err := s.access.Key(ctx, s.access.Remote(r), r.Header.Get("X-API-Key"))
		return key.User, err
	})
	if err != nil {
		return err
	}
	leave, err := s.hub.Admit(who.User.ID)
	if err != nil {
		return wire.Refuse(http.StatusServiceUnavailable, "busy", err.Error())
	}
	defer leave()
	w.Header().Set("Cache-Control", "no-store")
	to, names := limit.NewEvents(w), namesOf{}
	changes := s.hub.Listen(r.Context(), wanted)
	hello := ": listening\n\n"
	if r.Header.Get("Last-Event-ID") != "" {
		hello = missedEvent
	}
	if to.Send(hello) != nil {
		return nil // gone
	}
	// A client that may not listen any more is refused when it reconnects.
	sight.Follow(r.Context(), changes, s.beat, func(c server.Change) error {
		if err := s.learn(r.Context(), names, c.Owner); err != nil {
			return err
		}
		event, err := eventOf(c, names[c.Owner])
		if err != nil {
			return err
		}
		return to.Send(event)
	}, func() error { return to.Send(": beat\n\n") })
	return nil
}

// learn adds the name of a user that is not known yet.
func (s *Server) learn(ctx context.Context, names namesOf, user int64) error {
	if _, known := names[user]; known {
		return nil
	}
	found, err := s.store.users.UserNames(ctx, []int64{user})
	if err == nil {
		names[user] = found[user]
	}
	return err
}

// wantedChanges is the query's filter.
func wantedChanges(f *filterOf) func(server.Change) bool {
	session, project, machine, user := f.Text("session"), f.Text("project"), f.Machine(), f.User()
	return func(c server.Change) bool {
		return (session == "" || c.SessionID == session) && (project == "" || c.Project == project) &&
			(machine == nil || c.Machine == *machine) && (user == 0 || c.Owner == user)
	}
}

const missedEvent = "event: missed\ndata: {}\n\n"

// eventOf returns the event that announces a change of a user.
func eventOf(c server.Change, user string) (string, error) {
	var about any = eventAnswer{c.SessionID, user, c.Machine, c.Project, c.Generation, c.From, c.To, c.At}
	switch {
	case c.Stream == 0:
		return missedEvent, nil
	case c.About != "":
		about = artifactEvent{c.SessionID, user, c.Machine, c.Project, c.At}
	}
	b, err := json.Marshal(about)
	return fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", c.At.UnixMicro(), cmp.Or(c.About, "change"), b), err
}
