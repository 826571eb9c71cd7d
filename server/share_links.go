package server

import (
	"context"
	"time"
)

// ShareLink lets anyone with it read one session and its agents' transcripts, without a login. The store keeps a hash
// of its secret.
type ShareLink struct {
	ID      int64
	Hash    [32]byte // sha256 of the secret
	Stream  int64
	Session string // session id of the stream
	Title   string // of the session, or its first prompt
	By      User   // who made it
	Key     int64  // with which key; 0: none
	Created time.Time
	Until   time.Time
	Most    int64 // working links that By may have with it, when it is added; 0: any number
}

// ShareLinks keeps links to sessions. One works until its time is over, it is removed, the user who made it is disabled
// or may no longer share the session, the key it was made with is revoked, or the session is forgotten. Safe for
// concurrent use.
type ShareLinks interface {
	// AddShareLink keeps a link and returns its ID. ErrNotFound when there is no such stream or user, ErrHasMany when the
	// link would be one more than l.Most.
	AddShareLink(ctx context.Context, l ShareLink) (int64, error)
	// FindShareLink returns ErrNotFound for a link that is unknown or does not work at now.
	FindShareLink(ctx context.Context, hash [32]byte, now time.Time) (ShareLink, error)
	// ShareLinks lists the links that work at now, newest first.
	ShareLinks(ctx context.Context, q ShareLinkQuery, now time.Time) ([]ShareLink, error)
	// RemoveShareLink ends a link that the query also lists. ErrNotFound when there is none.
	RemoveShareLink(ctx context.Context, q ShareLinkQuery, id int64) error
}

// ShareLinkQuery chooses links.
type ShareLinkQuery struct {
	User   int64 // made by this user, or to its sessions; 0: of all users
	Stream int64 // to this stream; 0: to any
}

// ShareLinksOf returns the links that a user may see and end.
func ShareLinksOf(u User) ShareLinkQuery {
	if u.Role == Owner {
		return ShareLinkQuery{}
	}
	return ShareLinkQuery{User: u.ID}
}
