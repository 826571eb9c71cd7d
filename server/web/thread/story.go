package thread

import (
	"context"
	"math"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/transcript/session"
)

// Story is what a conversation went through that no line says by itself. It depends on all lines, not only on those of
// a page. The zero Story knows of nothing.
type Story struct {
	rewinds []session.Rewind // the newest ones, oldest first
	clears  []int64          // lines before which the context was cleared
}

// What is derived need not be read to know the story of a view. How much else is read at most:
const (
	lagBytes = 2 << 20  // of the newest view: what is not derived yet; until it is, the page says so
	oldBytes = 64 << 20 // of an older one, which has no fold
	// blockBytes is what a block of a message counts besides.
	blockBytes = 256
)

// ReadStory returns the story of a view, from the fold of its stream and the lines behind it.
func ReadStory(ctx context.Context, snap server.Snapshot, view server.View) (Story, error) {
	f, at, err := derive.FoldOf(ctx, snap)
	if err != nil {
		return Story{}, err
	}
	most := lagBytes
	if newest := snap.Generations(); len(newest) > 0 && view.Generation.Number != newest[len(newest)-1].Number {
		f, at, most = &session.Fold{}, server.Position{}, oldBytes
	} else if at.Generation != view.Generation.Number {
		f, at = &session.Fold{}, server.Position{}
	}
	return storyOf(ctx, snap, view.Between(at.Line, view.Total), f, most)
}

// wholeStory reads all of a view.
func wholeStory(ctx context.Context, snap server.Snapshot, view server.View) (Story, error) {
	return storyOf(ctx, snap, view.Between(0, view.Total), &session.Fold{}, math.MaxInt)
}

// storyOf continues a fold over lines.
func storyOf(ctx context.Context, snap server.Snapshot, spans []server.Span, f *session.Fold,
	bytes int) (Story, error) {
	err := EachHead(ctx, snap, spans, func(l server.Line, _ int64) error {
		if bytes -= len(l.Raw); bytes < 0 {
			return errFull
		}
		for _, rec := range Records(l) {
			f.Add(l.Index, rec)
			if rec.Message != nil && bytes < math.MaxInt/2 {
				bytes -= blockBytes * len(rec.Message.RawBlocks())
			}
		}
		return nil
	})
	if notFull(err) != nil {
		return Story{}, err
	}
	return Story{f.Rewinds(), f.Clears()}, nil
}

// left reports whether a rewind took a line out of the conversation.
func (s *Story) left(line int64) bool {
	return slices.ContainsFunc(s.rewinds, func(r session.Rewind) bool { return r.Leaves(line) })
}

// before returns the rewinds that a line revealed, and whether the context was cleared before it.
func (s *Story) before(line int64) (rewinds []session.Rewind, cleared bool) {
	for _, r := range s.rewinds {
		if r.Line == line {
			rewinds = append(rewinds, r)
		}
	}
	return rewinds, slices.Contains(s.clears, line)
}
