package document

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
)

// change is something that happened to a document.
type change struct {
	document  trackedDocument // after the change
	kind      string          // "": nothing is sent, only asks are done
	by        string
	line      int64 // of the transcript; -1: none
	requestID string
	reason    string   // of a refusal
	content   *content // nil: none is sent
	root      string   // absolute path of the folder that content lies in
	notice    bool     // the session's Claude gets a notice
	catch     string   // in the notice: what is not as Claude would expect
	asks      []projection.LinkRequest
}

// publish makes a change durable, together with the batches that send it. The caller holds work.
func (t *Tracker) publish(ctx context.Context, loc Location, c *change) error {
	effects := projection.Derivation{LinkRequests: c.asks}
	changed, sends := c.kind != "" && c.kind != kindRefused, t.canSend(loc)
	if changed {
		c.document.Dest = ""
		if sends {
			c.document.Dest = loc.Dest
		}
		effects.Documents = []projection.Document{c.document.Document}
	}
	if c.kind != "" && sends {
		batches, err := t.batches(c)
		if err != nil {
			return err
		}
		effects.File, effects.Batches = loc.File, batches
	}
	if c.notice {
		effects.Notices = []projection.Notice{{
			Session: loc.Session, Kind: projection.NoticeDocument, Path: c.document.Path, Reason: c.catch,
		}}
	}
	// even if the caller leaves
	errs, err := t.Projections.Commit(context.WithoutCancel(ctx), []projection.Derivation{effects})
	if err == nil {
		err = errs[0]
	}
	if err != nil {
		return fmt.Errorf("store document %s: %w", c.document.Path, err)
	}
	t.failing = false
	if changed {
		t.put(c.document, c.kind == kindLinked)
		t.bell.Ring()
	}
	return nil
}

// batches returns the batches of a change: a blob comes before the event that names it.
func (t *Tracker) batches(c *change) ([]outbox.Batch, error) {
	e := newEvent(c)
	var batches []outbox.Batch
	if content := c.content; content != nil && !content.TooLarge {
		if content.Bytes != nil && len(content.Bytes) <= maxInline {
			e.inline(content.Bytes)
		} else {
			e.Blob = content.SHA256
			media := "application/octet-stream"
			if content.Bytes != nil && isText(content.Bytes) {
				media = "text/plain; charset=utf-8"
			}
			ref := outbox.BlobRef{
				SHA256: content.SHA256, Name: projection.DocumentBlobs + c.document.Path, Media: media,
				Size: content.Size, Root: c.root, Path: c.document.Path,
			}
			batches = append(batches, t.packer.Blob(ref, content.Bytes))
		}
	}
	text, err := json.Marshal(&e)
	if err != nil {
		return nil, fmt.Errorf("write document event: %w", err)
	}
	return append(batches, t.packer.Documents([]json.RawMessage{text})), nil
}

// warn logs that something could not be stored, once until something is stored again. The caller holds work.
func (t *Tracker) warn(message string, args ...any) {
	if !t.failing {
		t.Log.Warn(message, args...)
	}
	t.failing = true
}
