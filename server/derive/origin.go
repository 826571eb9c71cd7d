package derive

import (
	"context"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
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

// origin says which session a transcript is, by its records: see server.Summary.
type origin struct {
	name string
	copy bool
}

// add adds a record of a stream. A file that continues another session begins with that one's records, and has its own
// after them: it is no copy.
func (o *origin) add(stream string, r *transcript.Record) {
	switch {
	case r.UUID == "" || r.SessionID == "":
	case o.name == "":
		o.name, o.copy = r.SessionID+"/"+r.UUID, r.SessionID != stream
	case o.copy && r.SessionID == stream:
		_, first, _ := strings.Cut(o.name, "/")
		o.name, o.copy = stream+"/"+first, false
	}
}

// Cost is what the answers of a row cost. Its Model must be set.
func Cost(p *transcript.Prices, row server.UsageRow) transcript.Cost {
	t := row.Tokens
	u := transcript.Usage{
		Input: t.Input, Output: t.Output, CacheRead: t.CacheRead, CacheWrite5m: t.CacheWrite5m, CacheWrite1h: t.CacheWrite1h,
		WebSearches: t.Searches,
	}
	return p.Cost(row.Model, u, row.Long)
}

// CostOfAll is what the answers of all rows cost together.
func CostOfAll(p *transcript.Prices, rows []server.UsageRow) (sum transcript.Cost) {
	for _, r := range rows {
		sum = sum.Plus(Cost(p, r))
	}
	return sum
}
