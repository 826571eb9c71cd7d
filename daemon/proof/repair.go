package proof

import (
	"context"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Repair makes transcripts of a server continue after the lines that it holds as they are on disk; with fromStart,
// before their first line. What follows is read again and sent in a new generation. A transcript that is in step, or no
// longer on disk, does not change. The result is what was done until the error, if there is one.
func (r *Reconciler) Repair(ctx context.Context, dest string, ids []tail.FileID,
	fromStart bool) (control.ResendResult, error) {
	c, err := r.newComparison(ctx, dest)
	if err != nil {
		return control.ResendResult{}, err
	}
	c.repair, c.fromStart, c.sending = true, fromStart, true
	for _, id := range ids {
		t, ok := r.Files.File(id)
		if !ok || t.Gone != 0 {
			continue
		}
		if err = c.limitCommon(ctx, id); err != nil {
			break
		}
		if err = c.some(ctx, []tail.Tracked{t}); err != nil {
			break
		}
	}
	if err == nil {
		err = c.retryReplaced(ctx, ids...)
	}
	c.result.Transcripts = c.compared
	return c.result, err
}

// fromFirst returns the agreement for sending everything again, whatever the server has.
func (c *comparison) fromFirst(has *protocol.Digest) *agreement {
	at := &agreement{prefix: &tail.Prefix{}}
	if has == nil {
		return at
	}
	if g, ok := has.Newest(); ok {
		at.front(has.Epoch, g, c.Origin.Epoch)
	}
	return at
}

// note adds a transcript that has rejoined to the result of a repair.
func (c *comparison) note(t *tail.Tracked, f *state.Routing, to tail.Cursor) {
	lines, bytes := max(0, t.Cursor.Line-to.Line), max(0, t.Cursor.Offset-to.Offset)
	c.result.Lines += lines
	c.result.Bytes += bytes
	c.result.Resent = append(c.result.Resent, control.ResentTranscript{
		SessionID: f.Stream.SessionID, Path: t.File.Path, From: to.Line, Lines: lines, Generation: to.Generation,
	})
}
