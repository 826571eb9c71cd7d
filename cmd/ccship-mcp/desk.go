package main

import (
	"context"

	"github.com/ccship/ccship/daemon/control"
)

// desk answers tool calls.
type desk struct {
	sockets []string // where a daemon may listen
	ccship  string   // the program
	flags   []string // of the configuration, for it
	session string   // that the server was started in; "" unknown
	dir     string   // the folder it was started in
}

// daemon is the daemon that runs.
func (d *desk) daemon(ctx context.Context) (*control.Client, error) {
	client, _, err := control.Reach(ctx, d.sockets)
	return client, err
}

// sessionOf is the session that a call is about: the one it names, else the one this server was started in, else the
// one that was written last in this folder or below it. A server lives on through /clear, which begins another session:
// only a call that names its own is sure to mean it.
func (d *desk) sessionOf(ctx context.Context, client *control.Client, named string) (string, error) {
	if named == "" {
		named = d.session
	}
	if named != "" {
		return named, nil
	}
	if d.dir == "" {
		return "", usage("name the session")
	}
	found, err := client.Sessions(ctx, control.SessionsQuery{Project: d.dir, Page: control.Page{Limit: 1}})
	if err != nil {
		return "", err
	}
	if len(found.Sessions) == 0 {
		return "", control.NoSession("no session was started in "+d.dir,
			"name one: `ccship sessions list` lists all")
	}
	return found.Sessions[0].Session, nil
}

// about finds the daemon and the session of a call.
func (d *desk) about(ctx context.Context, named string) (*control.Client, string, error) {
	client, err := d.daemon(ctx)
	if err != nil {
		return nil, "", err
	}
	session, err := d.sessionOf(ctx, client, named)
	return client, session, err
}
