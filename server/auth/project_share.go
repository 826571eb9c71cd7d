package auth

import (
	"context"
	"fmt"
	"strings"

	"github.com/ccship/ccship/server"
)

// AmbiguousProjectError means that several projects have a name.
type AmbiguousProjectError struct {
	Name   string
	Hashes []string
}

// Error lists the hashes of the projects.
func (a *AmbiguousProjectError) Error() string {
	return fmt.Sprintf("%q is the name of several projects: %s; say which by its hash",
		a.Name, strings.Join(a.Hashes, ", "))
}

// Projects lists projects.
type Projects interface {
	Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error)
}

// FindShare builds the share of the project among owner's whose hash or name it is. It accepts a hash of which owner
// has no session, with Project left empty: a share may outlive its sessions.
func FindShare(ctx context.Context, projects Projects, owner, with server.User,
	project string) (server.Share, error) {
	x := server.Share{Owner: owner.ID, With: with.ID, ProjectHash: project}
	groups, err := projects.Groups(ctx, server.Scope{User: owner.ID}, server.GroupQuery{})
	if err != nil {
		return x, fmt.Errorf("list projects: %w", err)
	}
	byName := map[string]string{}
	for _, g := range groups.List {
		if g.Owner != owner.ID {
			continue
		}
		if g.ProjectHash == project {
			x.Project = g.Project
			return x, nil
		}
		if g.Project == project {
			byName[g.ProjectHash] = g.Project
		}
	}
	if len(byName) > 1 {
		a := &AmbiguousProjectError{Name: project}
		for hash := range byName {
			a.Hashes = append(a.Hashes, hash)
		}
		return x, a
	}
	for hash, name := range byName {
		x.ProjectHash, x.Project = hash, name
	}
	return x, nil
}
