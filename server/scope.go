package server

import (
	"fmt"
	"time"
)

// Role is what a user may do.
type Role string

const (
	Owner  Role = "owner"  // sees everything, manages users and keys
	Member Role = "member" // ships sessions; sees own ones and those of projects shared with them
	Viewer Role = "viewer" // ships nothing; sees what is shared with them
)

// User is somebody who ships sessions or reads them.
type User struct {
	ID       int64
	Name     string
	Role     Role
	Created  time.Time
	Disabled time.Time // zero: may act; a disabled user's keys and logins are refused
}

// Scope is whose sessions a caller may see. The zero Scope sees nothing.
type Scope struct {
	All  bool  // of everybody
	User int64 // own ones, and those of projects shared with this user
}

// ScopeOf is what a user may see.
func ScopeOf(u User) Scope { return Scope{All: u.Role == Owner, User: u.ID} }

// Share lets a user see another one's sessions of one project.
type Share struct {
	Owner       int64 // whose sessions
	With        int64 // who may see them
	ProjectHash string
	Project     string // a name of it, for people
	Documents   bool   // linked documents too: they are files of the other's, not only what was said about them
	Created     time.Time
}

// Login is a browser that has shown a key or a one-time link.
type Login struct {
	User  User
	Key   int64 // the key it was made with; 0: a one-time link
	Until time.Time
}

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	switch r := Role(s); r {
	case Owner, Member, Viewer:
		return r, nil
	}
	return "", fmt.Errorf("%q is no role: want owner, member or viewer", s)
}
