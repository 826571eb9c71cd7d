package derive

import (
	"context"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

// FoldOf returns the fold of the newest view of a snapshot's epoch, and up to where it goes. Both are zero as long as
// nothing is derived, or nothing in this program's format.
func FoldOf(ctx context.Context, snap server.Snapshot) (*session.Fold, server.Position, error) {
	at, state, err := snap.Folded(ctx)
	var fold session.Fold
	var times session.TimelineBuilder
	var wrote provenance.Builder
	if err != nil || decodeState(state, &fold, &times, &wrote) != nil {
		return &session.Fold{}, server.Position{}, err
	}
	return &fold, at, nil
}

// Origin returns the id of the session whose history a session begins with; "" if it is no fork, or as long as nothing
// is derived. Claude Code 2.1.328 names that session in copied records; of other copies, it is the session that had the
// first of the copied answers.
func Origin(ctx context.Context, snap server.Snapshot) (string, error) {
	fold, _, err := FoldOf(ctx, snap)
	if err != nil {
		return "", err
	}
	if from := fold.Summary().ForkedFrom; from != "" {
		return from, nil
	}
	return snap.CopiedFrom(ctx)
}
