package api

import (
	"errors"
	"fmt"
	"net/http"
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
