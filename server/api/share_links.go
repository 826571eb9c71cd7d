package api

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

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
