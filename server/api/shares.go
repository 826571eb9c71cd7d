package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

// shareAnswer is a share in answers.
type shareAnswer struct {
	server.Share
	Owner string `json:"owner"` // whose sessions
	With  string `json:"with"`  // who may see them
}

func answerShare(x server.Share, names namesOf) shareAnswer {
	return shareAnswer{x, names[x.Owner], names[x.With]}
}

// listShares is GET /api/shares: those from and to the caller; an owner sees all.
func listShares(q *accountRequest) (status int, answer any, err error) {
	list, err := q.Store.Shares(q.Context())
	if err != nil {
		return 0, nil, err
	}
	var shown []server.Share
	var users []int64
	for _, x := range list {
		if who := q.Who.User; who.Role == server.Owner || x.Owner == who.ID || x.With == who.ID {
			shown, users = append(shown, x), append(users, x.Owner, x.With)
		}
	}
	names, err := q.Store.UserNames(q.Context(), users)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		Shares []shareAnswer `json:"shares"`
	}{each(shown, func(x server.Share) shareAnswer { return answerShare(x, names) })}, nil
}

// shareRequest names a share. Project is a project_hash, or a name that only one project has.
type shareRequest struct {
	Owner   string `json:"owner"` // "": oneself
	With    string `json:"with"`
	Project string `json:"project"`
	// Documents also shows linked documents, which are the other user's files. It is ignored when a share is removed.
	Documents bool `json:"documents"`
}

// addShare is POST /api/shares {owner, with, project, documents}. It changes only documents of an existing share.
func addShare(q *accountRequest) (status int, answer any, err error) {
	in, x, err := q.readShare()
	if err != nil {
		return 0, nil, err
	}
	if x.Project == "" {
		return 0, nil, fmt.Errorf("project %q: %w", in.Project, server.ErrNotFound)
	}
	x.Created, x.Documents, x.By = time.Now().UTC(), in.Documents, q.Who.ID
	if err := q.Access.AddShare(q.Context(), x); err != nil {
		return 0, nil, err
	}
	a, err := q.logShare("share added", x)
	return http.StatusCreated, a, err
}

// removeShare is DELETE /api/shares {owner, with, project}.
func removeShare(q *accountRequest) (status int, answer any, err error) {
	_, x, err := q.readShare()
	if err != nil {
		return 0, nil, err
	}
	if err := q.Store.RemoveShare(q.Context(), x); err != nil {
		return 0, nil, err
	}
	a, err := q.logShare("share removed", x)
	return http.StatusOK, a, err
}

// logShare logs what was done with a share, and returns its answer.
func (q *accountRequest) logShare(event string, x server.Share) (shareAnswer, error) {
	names, err := q.Store.UserNames(q.Context(), []int64{x.Owner, x.With})
	if err != nil {
		return shareAnswer{}, err
	}
	a := answerShare(x, names)
	q.Log.Info(event, "owner", a.Owner, "with", a.With, "project", x.ProjectHash, "by", q.Who.User.Name)
	return a, nil
}

// readShare reads a request and finds the share it names. A user shares only own projects; an owner, those of all
// users.
func (q *accountRequest) readShare() (in shareRequest, x server.Share, err error) {
	if err := q.Read(&in); err != nil {
		return in, x, err
	}
	owner, err := auth.Someone(q.Context(), q.Store, q.Who.User, in.Owner)
	if err != nil {
		return in, x, err
	}
	with, err := q.Store.FindUser(q.Context(), in.With)
	if err != nil {
		return in, x, err
	}
	x, err = auth.FindShare(q.Context(), q.Store, owner, with, in.Project)
	if ambiguous, ok := errors.AsType[*auth.AmbiguousProjectError](err); ok {
		return in, x, wire.Refuse(http.StatusConflict, "ambiguous", ambiguous.Error())
	}
	return in, x, err
}

func answerLink(l server.ShareLink) protocol.ShareLink {
	return protocol.ShareLink{ID: l.ID, SessionID: l.Session, Title: l.Title, By: l.By.Name, Created: l.Created,
		Until: l.Until}
}

// addShareLink is POST /api/sessions/{id}/share-links {expires}: an address that shows a session to anybody. Only whose
// session it is, and owners of the server, may make one.
func addShareLink(q *accountRequest) (status int, answer any, err error) {
	var body struct {
		Expires string `json:"expires"`
	}
	if err := q.Read(&body); err != nil {
		return 0, nil, err
	}
	ttl, err := auth.ParseShareTime(body.Expires)
	if err != nil {
		return 0, nil, wire.BadRequest("bad_request", "expires: "+err.Error())
	}
	at, err := q.Kept.Resolve(q.Context(), server.ScopeOf(q.Who.User), q.Ref)
	if err != nil {
		return 0, nil, err
	}
	if !auth.MayShare(q.Who.User, at) {
		return 0, nil, wire.Refuse(http.StatusForbidden, "forbidden", "only its owner may share a session by a link")
	}
	secret, l, err := q.Access.NewShareLink(q.Context(),
		server.ShareLink{Stream: at.Stream, By: q.Who.User, Key: q.Who.ID, Session: at.SessionID}, ttl)
	if err != nil {
		return 0, nil, err
	}
	q.Log.Info("session shared by a link", "link", l.ID, "by", q.Who.User.Name, "until", l.Until)
	a := answerLink(l)
	a.URL = auth.ShareURL(q.Base, secret)
	return http.StatusCreated, a, nil
}

// shareLinks is GET /api/share-links?session&user&machine: the links that work, made by the caller or to the caller's
// sessions; for owners of the server, all.
func shareLinks(q *accountRequest) (status int, answer any, err error) {
	choice := server.ShareLinksOf(q.Who.User)
	if session := q.URL.Query().Get("session"); session != "" {
		q.Ref.SessionID = session
		at, err := q.Kept.Resolve(q.Context(), server.ScopeOf(q.Who.User), q.Ref)
		if err != nil {
			return 0, nil, err
		}
		choice.Stream = at.Stream
	}
	list, err := q.Kept.ShareLinks(q.Context(), choice, time.Now())
	return http.StatusOK, struct {
		Links []protocol.ShareLink `json:"links"`
	}{each(list, answerLink)}, err
}

// removeShareLink is DELETE /api/share-links/{id}: the link shows nothing from now on.
func removeShareLink(q *accountRequest) (status int, answer any, err error) {
	id, err := strconv.ParseInt(q.PathValue("id"), 10, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("link %.40q: %w", q.PathValue("id"), server.ErrNotFound)
	}
	if err := q.Kept.RemoveShareLink(q.Context(), server.ShareLinksOf(q.Who.User), id); err != nil {
		return 0, nil, err
	}
	q.Log.Info("link to a session ended", "link", id, "by", q.Who.User.Name)
	return http.StatusOK, struct {
		ID int64 `json:"id"`
	}{id}, nil
}

// savedViewAnswer is a saved view in answers.
type savedViewAnswer struct {
	server.SavedView
	URL string `json:"url"` // the page
	API string `json:"api"` // the call that answers the same, as of now
}

func (q *accountRequest) answerView(v server.SavedView, zone time.Duration) savedViewAnswer {
	return savedViewAnswer{v, q.Base + v.Path(), v.Call(time.Now(), zone)}
}

// savedViews is GET /api/views?zone: the caller's own.
func savedViews(q *accountRequest) (status int, answer any, err error) {
	f := newQuery(q.URL.Query(), nil)
	zone := f.Zone()
	if f.Err != nil {
		return 0, nil, f.Err
	}
	list, err := q.Kept.SavedViews(q.Context(), q.Who.User.ID)
	return http.StatusOK, struct {
		Views []savedViewAnswer `json:"views"`
	}{each(list, func(v server.SavedView) savedViewAnswer { return q.answerView(v, zone) })}, err
}

// saveView is PUT /api/views/{name} {page, query}: a view that replaces the caller's one of that name.
func saveView(q *accountRequest) (status int, answer any, err error) {
	var body struct {
		Page  string `json:"page"`
		Query string `json:"query"`
	}
	if err := q.Read(&body); err != nil {
		return 0, nil, err
	}
	v := server.SavedView{Name: q.PathValue("name"), Page: body.Page, Query: body.Query, Updated: time.Now().UTC()}
	if err = v.Tidy(); err == nil {
		err = q.Kept.SaveView(q.Context(), q.Who.User.ID, v)
	}
	if bad, ok := errors.AsType[server.ViewError](err); ok {
		return 0, nil, wire.BadRequest("invalid_view", bad.Error())
	}
	return http.StatusOK, q.answerView(v, 0), err
}

// removeView is DELETE /api/views/{name}.
func removeView(q *accountRequest) (status int, answer any, err error) {
	name := q.PathValue("name")
	return http.StatusOK, struct {
		Name string `json:"name"`
	}{name}, q.Kept.RemoveView(q.Context(), q.Who.User.ID, name)
}

// marked is GET and PUT /api/sessions/{id}/mark: the caller's own mark, or another in its place.
func marked(q *accountRequest) (status int, answer any, err error) {
	at, err := q.Kept.Resolve(q.Context(), server.ScopeOf(q.Who.User), q.Ref)
	if err != nil {
		return 0, nil, err
	}
	if q.Method == http.MethodPut {
		var m server.Mark
		if err := q.Read(&m); err != nil {
			return 0, nil, err
		}
		m.Stream, m.Updated = at.Stream, time.Now().UTC()
		if err := m.Tidy(); err != nil {
			return 0, nil, wire.BadRequest("invalid_mark", err.Error())
		}
		if err := q.Kept.SetMark(q.Context(), q.Who.User.ID, m); err != nil {
			return 0, nil, err
		}
	}
	list, err := q.Kept.Marks(q.Context(), q.Who.User.ID, []int64{at.Stream})
	m := list[at.Stream]
	m.Tags = orEmpty(m.Tags)
	return http.StatusOK, m, err
}
