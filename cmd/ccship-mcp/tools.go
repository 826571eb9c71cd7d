package main

import (
	"cmp"
	"context"

	"github.com/ccship/ccship/daemon/control"
)

// tools answers tool calls.
type tools struct {
	sockets []string // where a daemon may listen
	ccship  string   // the program
	flags   []string // of the configuration, for it
	session string   // that the server was started in; "" unknown
	dir     string   // the folder it was started in
}

// daemon returns the daemon that runs.
func (t *tools) daemon(ctx context.Context) (*control.Client, error) {
	client, _, err := control.Reach(ctx, t.sockets)
	return client, err
}

// sessionOf returns the session that a call is about: the one it names, else the one this server was started in, else
// the one that was written last in this folder or below it. After /clear the server still runs but the session is
// another: then only a call that names its session is sure to get it.
func (t *tools) sessionOf(ctx context.Context, client *control.Client, named string) (string, error) {
	if session := cmp.Or(named, t.session); session != "" {
		return session, nil
	}
	if t.dir == "" {
		return "", usage("session must be given here; `ccship list` lists all sessions")
	}
	found, err := client.Sessions(ctx, control.SessionsQuery{Project: t.dir, Page: control.Page{Limit: 1}})
	if err != nil {
		return "", err
	}
	if len(found.Sessions) == 0 {
		return "", control.NoSession("no session was started in "+t.dir,
			"name a session; `ccship list` lists all")
	}
	return found.Sessions[0].Session, nil
}

// about finds the daemon and the session of a call.
func (t *tools) about(ctx context.Context, named string) (*control.Client, string, error) {
	client, err := t.daemon(ctx)
	if err != nil {
		return nil, "", err
	}
	session, err := t.sessionOf(ctx, client, named)
	return client, session, err
}
