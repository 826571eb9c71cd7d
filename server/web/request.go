package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript/session"
)

// parseStream parses the address of a session: its newest generation.
func parseStream(r *http.Request) thread.Stream {
	q := r.URL.Query()
	s := thread.Stream{ID: r.PathValue("id"), User: page.Number(q.Get(thread.UserParam), 0), Generation: -1}
	if q.Has("machine") {
		m := q.Get("machine")
		s.Machine = &m
	}
	return s
}

// requested parses the address of a session, with the epoch and the generation that it asks for.
func requested(r *http.Request) thread.Stream {
	s, q := parseStream(r), r.URL.Query()
	s.Epoch, s.Generation = q.Get("epoch"), page.Number(q.Get("generation"), -1)
	if s.Machine == nil && s.User == 0 { // the id alone names it
		s.Short, _, _ = strings.Cut(s.ID, "/")
	}
	return s
}

// open pins the requested stream and view while fn runs. For the reader, what is not visible does not exist.
func (v *Viewer) open(ctx context.Context, who server.Login, s thread.Stream,
	fn func(server.Snapshot, server.View) error) error {
	return openView(ctx, v.store.View, server.ScopeOf(who.User), s, fn)
}

// opener opens a snapshot of a stream that a scope lets see.
type opener func(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error)

// openView pins a view of a stream while fn runs.
func openView(ctx context.Context, open opener, scope server.Scope, s thread.Stream,
	fn func(server.Snapshot, server.View) error) (err error) {
	snap, err := open(ctx, scope, s.Ref())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	view, err := s.View(snap)
	if err != nil {
		return err
	}
	return fn(snap, view)
}

// session returns the session of a stream, which must have the generation that the stream names.
func (v *Viewer) session(ctx context.Context, who server.Login, s thread.Stream) (x server.Session, err error) {
	err = v.open(ctx, who, s, func(snap server.Snapshot, _ server.View) error {
		x = snap.Session()
		return nil
	})
	return x, err
}

// ownerOf returns whose session a listing that names one is about: the address says it, or there is only one.
func (v *Viewer) ownerOf(r *http.Request, who server.Login) (int64, error) {
	q := r.URL.Query()
	ref := server.Ref{SessionID: q.Get("session"), Owner: page.Number(q.Get(thread.UserParam), 0)}
	if ref.SessionID == "" || ref.Owner != 0 {
		return ref.Owner, nil
	}
	x, err := v.store.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if errors.Is(err, server.ErrNotFound) {
		return 0, nil
	}
	return x.Owner, err
}

// shortNamer knows short names of sessions.
type shortNamer interface {
	ShortNames(ctx context.Context, scope server.Scope, ids []string) (map[string]string, error)
}

// shorten sets the short names of sessions, with which addresses are made that people can read and send. An agent has
// that of its session.
func shorten(ctx context.Context, st shortNamer, scope server.Scope, sessions ...*server.Session) error {
	ids := make([]string, len(sessions))
	for i, x := range sessions {
		ids[i], _, _ = strings.Cut(x.SessionID, "/")
	}
	names, err := st.ShortNames(ctx, scope, ids)
	for i, x := range sessions {
		x.Short = names[ids[i]]
	}
	return err
}

// findShort lists sessions with their short names.
func (p *homePages) findShort(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	found, err := p.store.Find(ctx, scope, q)
	if err != nil {
		return found, err
	}
	sessions := make([]*server.Session, len(found.List))
	for i := range found.List {
		sessions[i] = &found.List[i].Session
	}
	return found, shorten(ctx, p.store, scope, sessions...)
}

// chipProject is a project that a listing can be narrowed to.
type chipProject struct {
	derive.Project
	URL string
	On  bool
}

// shown is how many groups a page lists or offers: those that were heard last.
const shown = derive.MostProjects

// groups returns what a page offers to choose from, and what its query has chosen.
func groups(ctx context.Context, st server.SessionFinder, scope server.Scope, q url.Values) ([]server.Group, error) {
	page, err := st.Groups(ctx, scope, server.GroupQuery{Limit: shown})
	chosen := q.Get("project")
	if err != nil || page.Next == "" || chosen == "" || slices.ContainsFunc(derive.ProjectsOf(page.List).List,
		func(p derive.Project) bool { return p.Name == chosen }) {
		return page.List, err
	}
	more, err := st.Groups(ctx, scope, server.GroupQuery{Project: chosen, Limit: shown})
	return append(page.List, more.List...), err
}

// projects are chips of groups, with addresses of the page at base and path.
func projects(groups []server.Group, q url.Values, base, path string) (out []chipProject) {
	for _, p := range derive.ProjectsOf(groups).List {
		out = append(out, chipProject{Project: p, On: q.Get("project") == p.Name,
			URL: base + page.Address(path, q, "project", p.Name, "after", "")})
	}
	return out
}

// functions returns what templates call.
func (v *Viewer) functions() template.FuncMap {
	return template.FuncMap{
		"session":  func(x server.Session) string { return v.Base + thread.StreamOf(x).Path("") },
		"bare":     bare,
		"size":     page.Size,
		"ago":      func(t time.Time) string { return page.Ago(v.Now().Sub(t)) },
		"stamp":    page.Stamp,
		"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clock":    func(t time.Time) string { return t.UTC().Format("15:04") },
		"count":    page.Count,
		"tokens":   page.Tokens,
		"digits":   page.Digits,
		"cost":     page.Cost,
		"span":     page.Span,
		"duration": page.Duration,
		"percent":  func(part, whole int64) int64 { return min(max(page.Percent(part, whole), 0), 100) },
		"model":    modelName,
		"short":    func(s string, n int) string { return page.Short(s, n) },
		"firstOf":  cmp.Or[string],
		"add":      func(a, b int64) int64 { return a + b },
		"hitKind":  hitKind,
		"join":     func(list []string) string { return strings.Join(list, ", ") },
	}
}

// bare returns the address of a page's content without the page around it.
func bare(address string) string {
	if strings.Contains(address, "?") {
		return address + "&bare=1"
	}
	return address + "?bare=1"
}

// modelName returns a model's name without the common prefix and the date.
func modelName(s string) string {
	s = strings.TrimPrefix(s, "claude-")
	if i := strings.LastIndexByte(s, '-'); i > 0 && len(s)-i == 9 && strings.Trim(s[i+1:], "0123456789") == "" {
		s = s[:i]
	}
	return s
}

// hitKind returns what kind of line a search found, as people say it.
func hitKind(kind string) string {
	words := map[string]string{"answer": "response", "tool": "tool call", server.EditKind: "file changed",
		server.ReadKind: "file read", server.CommandKind: "command run"}
	return cmp.Or(words[kind], kind)
}

const (
	// heldBytes is how many bytes of pages and images wait in memory for slow readers; heldOfOne, those of one user, and
	// as many of all visitors of that user's links.
	heldBytes = 256 << 20
	heldOfOne = 48 << 20
)

// heldAnswers bounds answers that are in memory until their readers have taken them.
type heldAnswers struct{ bytes *limit.Slots }

// of counts what is written to a user.
func (h *heldAnswers) of(w http.ResponseWriter, user int64) page.Counted {
	return page.Counted{ResponseWriter: w, Hold: func(n int64) (release func(), err error) {
		return h.bytes.Acquire(context.Background(), user, n, 0)
	}}
}

// image is GET /sessions/{id}/image/{line}/{n}: an image of a line.
func (v *Viewer) image(w http.ResponseWriter, r *http.Request, who server.Login) error {
	return answerImage(w, r, func(fn func(server.Snapshot, server.View) error) error {
		return v.open(r.Context(), who, requested(r), fn)
	})
}

// answerImage answers with the image that a request names, of the session that open opens.
func answerImage(w http.ResponseWriter, r *http.Request,
	open func(func(server.Snapshot, server.View) error) error) error {
	line, err := number(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return server.ErrNotFound
	}
	var kind string
	var picture []byte
	err = open(func(snap server.Snapshot, view server.View) error {
		return thread.ReadLine(r.Context(), snap, view, line, func(l server.Line) (err error) {
			kind, picture, err = thread.Decoded(l, n)
			return err
		})
	})
	if err == nil {
		page.WriteImage(w, kind, picture)
	}
	return err
}

// mostTimes is how many calls of a page are asked for.
const mostTimes = 2 * thread.PageLines

// outlineTimes reads how long the calls took whose results are on some lines of a stream's newest view.
func outlineTimes(ctx context.Context, st server.Moments, x server.Session, from,
	to int64) (map[int64][]thread.Times, error) {
	list, err := st.Moments(ctx, server.MomentQuery{Owner: x.Owner, Stream: x.ID, From: from, To: to, Limit: mostTimes,
		Kinds: []string{string(session.TimelineTool), string(session.ToolError), string(session.ToolRefusal)}})
	if err != nil {
		return nil, fmt.Errorf("read times of calls: %w", err)
	}
	out := map[int64][]thread.Times{}
	for _, raw := range list {
		var m session.Moment
		if err := json.Unmarshal(raw.Data, &m); err != nil {
			return nil, fmt.Errorf("read times of calls: %w", err)
		}
		out[raw.Line] = append(out[raw.Line], thread.Times{Tool: m.Tool, MayWait: m.MayWait,
			Took: time.Duration(m.Took) * time.Millisecond, Waited: time.Duration(m.Waited) * time.Millisecond})
	}
	return out, nil
}
