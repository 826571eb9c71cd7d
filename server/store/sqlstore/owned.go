package sqlstore

import (
	"context"
	"slices"

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

// ForgetCovers reports whether forgetting a session forgets the stream of that name and parent.
func ForgetCovers(session, name, parent string) bool {
	return slices.Contains(transcript.ForgetNames(name), session) ||
		slices.Contains(transcript.ForgetNames(parent), session)
}
