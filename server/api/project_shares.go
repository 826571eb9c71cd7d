package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

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
	owner, err := q.someone(in.Owner)
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

// shareLinkAnswer is a link to a session in answers.
type shareLinkAnswer struct {
	ID      int64     `json:"id"`
	URL     string    `json:"url,omitempty"` // only when it is made
	Session string    `json:"session_id"`
	Title   string    `json:"title"`
	By      string    `json:"by"` // user
	Created time.Time `json:"created"`
	Until   time.Time `json:"until"`
}

func answerLink(l server.ShareLink) shareLinkAnswer {
	return shareLinkAnswer{ID: l.ID, Session: l.Session, Title: l.Title, By: l.By.Name, Created: l.Created, Until: l.Until}
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
		Links []shareLinkAnswer `json:"links"`
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

// addTicket is POST /api/tickets {ttl}: a one-time link that logs a browser in as the caller.
func addTicket(q *accountRequest) (status int, answer any, err error) {
	var body struct {
		TTL string `json:"ttl"`
	}
	if err := q.Read(&body); err != nil {
		return 0, nil, err
	}
	ttl, err := auth.ParseTTL(body.TTL)
	if err != nil {
		return 0, nil, wire.BadRequest("bad_request", err.Error())
	}
	until := time.Now().Add(ttl).UTC()
	ticket, err := q.Access.NewTicket(q.Context(), q.Who.User, q.Who.ID, ttl)
	if err != nil {
		return 0, nil, err
	}
	q.Log.Info("one-time link made", "user", q.Who.User.Name)
	return http.StatusCreated, struct {
		URL   string    `json:"url"`
		Until time.Time `json:"until"`
	}{auth.TicketURL(q.Base, ticket), until}, nil
}
