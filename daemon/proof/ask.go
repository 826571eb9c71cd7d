package proof

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript"
)

// mostAsked is the largest number of transcripts in one request to a server.
const mostAsked = 200

// askServers collects what was read, and asks each server about many transcripts at once.
func (v *verifier) askServers(ctx context.Context, read <-chan *candidate) error {
	waiting := map[string][]*candidate{} // by destination
	for c := range read {
		dest := c.facts.Dest
		if waiting[dest] = append(waiting[dest], c); len(waiting[dest]) < mostAsked {
			continue
		}
		if err := v.ask(ctx, dest, waiting[dest]); err != nil {
			return err
		}
		waiting[dest] = nil
	}
	for _, dest := range slices.Sorted(maps.Keys(waiting)) {
		if err := v.ask(ctx, dest, waiting[dest]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ask asks a server about some transcripts, and compares each.
func (v *verifier) ask(ctx context.Context, dest string, list []*candidate) error {
	if len(list) == 0 {
		return nil
	}
	refs := make([]remote.Ref, len(list))
	for i, c := range list {
		refs[i] = v.ref(c)
	}
	digests, err := v.reader(dest).Digests(ctx, refs, false)
	if err != nil {
		return err
	}
	forgotten := map[string]bool{}
	if slices.Contains(digests, nil) {
		if forgotten, err = v.forgottenBy(ctx, dest); err != nil {
			return err
		}
	}
	for i, c := range list {
		if digests[i] == nil && isForgotten(c.report.SessionID, forgotten) {
			v.Rules.Forget(c.file.File.ID)
			c.report.Note = "forgotten"
			v.report.addExcluded(c.report)
			v.report.fileDone()
			continue
		}
		if err := v.compareUnmoved(ctx, c, *cmp.Or(digests[i], new(protocol.Digest))); err != nil {
			return err
		}
	}
	return nil
}

// ref names what a server shows of a transcript by default.
func (v *verifier) ref(c *candidate) remote.Ref {
	return remote.Ref{Session: c.report.SessionID, User: remote.Me, Machine: &v.Origin.Machine}
}

// forgottenBy returns the sessions that a server has to forget.
func (v *verifier) forgottenBy(ctx context.Context, dest string) (map[string]bool, error) {
	list, err := v.reader(dest).Forgotten(ctx)
	if err != nil && !remote.Is(err, remote.CodeNoReading) { // an older server forgets nothing
		return nil, err
	}
	names := map[string]bool{}
	for _, f := range list {
		names[f.SessionID] = true
	}
	return names, nil
}

// isForgotten reports whether a stream belongs to one of some sessions.
func isForgotten(stream string, sessions map[string]bool) bool {
	return slices.ContainsFunc(transcript.ForgetNames(stream), func(name string) bool { return sessions[name] })
}
