package web

import (
	"errors"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
)

type shareRow struct {
	server.Share
	OwnerName, WithName string
	Mine                bool
}

// ownProjects lists a user's projects, each once although it may be on several machines.
func ownProjects(groups []server.Group, user int64) []server.Group {
	seen := map[string]bool{}
	var out []server.Group
	for _, g := range groups {
		if g.Owner == user && !seen[g.ProjectHash] {
			seen[g.ProjectHash] = true
			out = append(out, g)
		}
	}
	return out
}

// formShare reads which project is shared with which user. Members share only their own.
func (p *accountPages) formShare(r *http.Request, who server.Login) (server.Share, string, error) {
	s := server.Share{Owner: who.User.ID, ProjectHash: r.PostForm.Get("project"), Created: p.now(),
		By: who.Key}
	if from := r.PostForm.Get("owner"); from != "" && from != who.User.Name {
		u, err := p.store.FindUser(r.Context(), from)
		if err != nil || who.User.Role != server.Owner {
			return s, "", server.ErrNotFound
		}
		s.Owner = u.ID
	}
	with, err := p.store.FindUser(r.Context(), r.PostForm.Get("with"))
	if errors.Is(err, server.ErrNotFound) {
		return s, "", page.BadRequestError("No such user.")
	}
	if err != nil {
		return s, "", err
	}
	if s.With = with.ID; s.With == s.Owner {
		return s, "", page.BadRequestError("You cannot share a project with its owner.")
	}
	return s, with.Name, nil
}

func (p *accountPages) addShare(r *http.Request, who server.Login) (notice, secret string, err error) {
	s, with, err := p.formShare(r, who)
	if err != nil {
		return "", "", err
	}
	groups, err := p.store.Groups(r.Context(), server.Scope{User: s.Owner}, server.GroupQuery{})
	if err != nil {
		return "", "", err
	}
	for _, g := range ownProjects(groups.List, s.Owner) {
		if g.ProjectHash == s.ProjectHash {
			s.Project, s.Documents = g.Project, r.PostForm.Get("documents") != ""
			what := g.Project + " is shared with " + with + ", "
			if !s.Documents {
				what += "without its linked documents."
			} else {
				what += "with its linked documents."
			}
			return what, "", p.access.AddShare(r.Context(), s)
		}
	}
	return "", "", page.BadRequestError("No such project.")
}

func (p *accountPages) removeShare(r *http.Request, who server.Login) (notice, secret string, err error) {
	s, with, err := p.formShare(r, who)
	if err != nil {
		return "", "", err
	}
	return "No longer shared with " + with + ".", "", p.store.RemoveShare(r.Context(), s)
}
