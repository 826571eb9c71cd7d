package sqlstore

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// OwnedStream is a stream and its owner.
type OwnedStream struct{ Stream, Owner int64 }

// OneOwner is an *server.AmbiguousError when streams of one session and its agents belong to several users.
func OneOwner(ctx context.Context, l Dialect, session string, streams []OwnedStream) error {
	no := &server.AmbiguousError{Session: session}
	for _, x := range streams {
		if slices.ContainsFunc(no.Choices, func(a server.Address) bool { return a.Owner == x.Owner }) {
			continue
		}
		a, err := Resolve(ctx, l, server.Scope{All: true}, server.Ref{Stream: x.Stream}, (*Filter).Scope)
		if err != nil {
			return err
		}
		if no.Choices = append(no.Choices, a); len(no.Choices) == server.MaxChoices {
			break
		}
	}
	if len(no.Choices) > 1 {
		return no
	}
	return nil
}

// Forgettables are the streams of a session and of its agents: those that its note will keep away.
func Forgettables(ctx context.Context, d Dialect, scope server.Scope, session string,
	owner int64) (out []OwnedStream, err error) {
	if session == "" {
		return nil, nil
	}
	session = CleanText(session)
	agent, copied, long := session+"/", session+"~", utf8.RuneCountInString(session)+1
	var f Filter
	f.Add(`(s.session_key = ? OR s.parent = ? OR substr(s.session_id, 1, ?) IN (?, ?)
  OR substr(s.parent, 1, ?) IN (?, ?))`,
		Key(session), session, long, agent, copied, long, agent, copied)
	f.Own(scope)
	f.Streams(nil, owner)
	err = d.Query(ctx, `SELECT s.id, s.owner, s.session_id, s.parent FROM streams s `+f.Where()+` ORDER BY s.id`, f.Args,
		func(row Scanner) error {
			var x OwnedStream
			var name, parent string
			err := row.Scan(&x.Stream, &x.Owner, &name, &parent)
			if slices.Contains(transcript.ForgetNames(name), session) ||
				slices.Contains(transcript.ForgetNames(parent), session) {
				out = append(out, x)
			}
			return err
		})
	return out, Wrap(err, "find streams")
}
