package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/ccship/ccship/server"
)

const selectLinkRequest = `
SELECT w.id, s.session_id, s.machine, s.host, w.path, w.link, w.asked_by, w.asked, w.state, w.reason, w.answered
FROM link_requests w JOIN streams s ON s.owner = w.owner AND s.id = w.stream `

func scanLinkRequest(row Scanner) (w server.LinkRequest, err error) {
	var link, asked, answered int64
	var state string
	err = row.Scan(&w.ID, &w.SessionID, &w.Machine, &w.Host, &w.Path, &link, &w.By, &asked, &state, &w.Reason, &answered)
	w.Link, w.State, w.Created, w.Answered = link == 1, server.LinkRequestState(state), Moment(asked), Moment(answered)
	return w, err
}

func listLinkRequests(ctx context.Context, l Dialect, rest string, args ...any) (out []server.LinkRequest, err error) {
	out = []server.LinkRequest{}
	err = l.Query(ctx, selectLinkRequest+rest, args, func(row Scanner) error {
		w, err := scanLinkRequest(row)
		out = append(out, w)
		return err
	})
	return out, err
}

// RequestLink implements server.Artifacts.
func (p *Artifacts) RequestLink(ctx context.Context, scope server.Scope, ref server.Ref,
	n server.LinkRequestInput) (server.LinkRequest, error) {
	if err := server.CheckPath(n.Path); err != nil {
		return server.LinkRequest{}, err
	}
	var out server.LinkRequest
	var x server.Address
	err := p.db.Write(ctx, func(l Dialect) (err error) {
		if x, err = Resolve(ctx, l, scope, ref, (*Filter).Own); err != nil {
			return err
		}
		if x.Machine == "" {
			return server.ErrNoDaemon
		}
		// This row lock keeps two identical requests from being stored twice.
		_, err = l.Exec(ctx, `UPDATE streams SET host = host WHERE owner = ? AND id = ?`, x.Owner, x.Stream)
		if err != nil {
			return err
		}
		out, err = addLinkRequest(ctx, l, x, n)
		return err
	})
	if err != nil {
		return server.LinkRequest{}, fmt.Errorf("store link request: %w", err)
	}
	p.db.Tell(server.Change{About: server.AboutDocuments, Stream: x.Stream, SessionID: x.SessionID, Machine: x.Machine,
		Owner: x.Owner, Project: x.ProjectHash, At: n.At})
	return out, nil
}

// addLinkRequest stores a link request about a stream, or returns an equal one that waits.
func addLinkRequest(ctx context.Context, l Dialect, x server.Address,
	n server.LinkRequestInput) (server.LinkRequest, error) {
	waiting, err := listLinkRequests(ctx, l, `WHERE w.owner = ? AND w.stream = ? AND w.state = 'waiting'
ORDER BY w.num`, x.Owner, x.Stream)
	if err != nil {
		return server.LinkRequest{}, err
	}
	taken := false
	for _, w := range waiting {
		if w.Path != CleanText(n.Path) {
			continue
		}
		if w.Link == n.Link {
			return w, nil
		}
		if _, err := l.Exec(ctx, `DELETE FROM link_requests WHERE owner = ? AND id = ?`, x.Owner, w.ID); err != nil {
			return server.LinkRequest{}, err
		}
		taken = true
	}
	if len(waiting) >= server.MaxLinkRequests && !taken {
		return server.LinkRequest{}, server.ErrTooManyLinkRequests
	}
	w := server.LinkRequest{ID: rand.Text(), SessionID: x.SessionID, Machine: x.Machine, Host: x.Host,
		Path: CleanText(n.Path), Link: n.Link, By: n.By, Created: Moment(Micros(n.At)), State: server.LinkRequestWaiting}
	_, err = l.Exec(ctx, `
INSERT INTO link_requests (owner, id, stream, path, link, asked_by, asked, state, reason, answered)
VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', '', 0)`,
		x.Owner, w.ID, x.Stream, w.Path, Flag(w.Link), w.By, Micros(n.At))
	return w, err
}

// answer records the result of a link request; it ignores requests of other streams.
func (d streamTx) answer(ctx context.Context, e *server.DocumentEvent) error {
	state := server.LinkRequestDone
	if e.Change == server.Refused {
		state = server.LinkRequestRefused
	}
	_, err := d.Exec(ctx, `
UPDATE link_requests SET state = ?, reason = ?, answered = ?
WHERE owner = ? AND id = ? AND stream = ? AND state = 'waiting'`,
		string(state), CleanText(e.Reason), d.now, d.owner, CleanText(e.LinkRequest), d.stream)
	return err
}

// LinkRequests implements server.Artifacts.
func (p *Artifacts) LinkRequests(ctx context.Context, scope server.Scope,
	ref server.Ref) ([]server.LinkRequest, error) {
	x, err := Resolve(ctx, p.db, scope, ref, (*Filter).artifacts)
	if err != nil {
		return nil, err
	}
	out, err := listLinkRequests(ctx, p.db, `
WHERE w.owner = ? AND w.stream = ? ORDER BY w.num DESC LIMIT ?`, x.Owner,
		x.Stream, server.MaxLinkRequests)
	return out, Wrap(err, "list link requests")
}

// PendingLinkRequests implements server.ArtifactIngester.
func (p *Artifacts) PendingLinkRequests(ctx context.Context, owner int64,
	machine string) ([]server.LinkRequest, error) {
	out, err := listLinkRequests(ctx, p.db, `
WHERE w.state = 'waiting' AND s.owner = ? AND s.machine = ? ORDER BY w.num LIMIT ?`,
		owner, machine, server.MaxLinkRequests)
	return out, Wrap(err, "list link requests")
}
