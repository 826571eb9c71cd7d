package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

const (
	// defaultBeat keeps proxies from closing a quiet connection. At each beat the key is checked again, and
	// before each change of another user what is shared.
	defaultBeat = 15 * time.Second
	// eventPatience is how long a listener may take to read an event.
	eventPatience = 10 * time.Second
)

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
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events to itself
	stream := &eventStream{w: w, control: http.NewResponseController(w), names: namesOf{}}
	changes := s.hub.Listen(r.Context(), wanted)
	if err := stream.begin(r.Header.Get("Last-Event-ID") != ""); err != nil {
		return nil // gone
	}
	s.sendChanges(r.Context(), stream, changes, sight)
	return nil
}

// sendChanges writes changes until the channel closes, or the client is too slow, gone or no longer allowed to listen.
// Then the response ends; a client that may not listen is refused when it reconnects.
func (s *Server) sendChanges(ctx context.Context, to *eventStream, changes <-chan server.Change, sight *auth.Sight) {
	beat := time.NewTicker(s.beat)
	defer beat.Stop()
	for {
		var err error
		select {
		case c, ok := <-changes:
			if !ok {
				return // the client has gone, or the server is stopping
			}
			var may bool
			if may, err = sight.May(ctx, c); may {
				if err = s.learn(ctx, to.names, c.Owner); err == nil {
					err = to.change(c)
				}
			}
		case <-beat.C:
			if err = sight.Check(ctx); err == nil {
				err = to.comment("beat")
			}
		}
		if err != nil {
			return
		}
	}
}

// learn adds the name of a user that is not known yet.
func (s *Server) learn(ctx context.Context, names namesOf, user int64) error {
	if _, known := names[user]; known {
		return nil
	}
	found, err := s.store.users.UserNames(ctx, []int64{user})
	names[user] = found[user]
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

// eventStream writes events, each with a time limit.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	names   namesOf // of those whose changes were sent
}

func (e *eventStream) begin(again bool) error {
	if again {
		return e.write("event: missed\ndata: {}\n\n")
	}
	return e.comment("listening")
}

func (e *eventStream) comment(text string) error { return e.write(": " + text + "\n\n") }

func (e *eventStream) change(c server.Change) error {
	if c.Stream == 0 {
		return e.write("event: missed\ndata: {}\n\n")
	}
	if c.About != "" {
		b, err := json.Marshal(artifactEvent{c.SessionID, e.names[c.Owner], c.Machine, c.Project, c.At})
		if err != nil {
			return err
		}
		return e.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", c.At.UnixMicro(), c.About, b))
	}
	b, err := json.Marshal(eventAnswer{
		c.SessionID, e.names[c.Owner], c.Machine, c.Project, c.Generation, c.From, c.To, c.At})
	if err != nil {
		return err
	}
	return e.write(fmt.Sprintf("id: %d\nevent: change\ndata: %s\n\n", c.At.UnixMicro(), b))
}

func (e *eventStream) write(text string) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(eventPatience)) // not every writer has deadlines (tests)
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return e.control.Flush()
}
