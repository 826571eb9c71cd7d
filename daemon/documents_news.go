package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/document/file"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// What can become of a document, as the wire says it.
const (
	linkedChange   = "linked" // with the content that it has then
	unlinkedChange = "unlinked"
	modifiedChange = "modified"
	deletedChange  = "deleted"
	refusedChange  = "refused" // only to a wish of the viewer
)

// Who did it.
const (
	byClaude = "claude" // a tool of its, whose result is in the transcript
	byMCP    = "mcp"    // Claude asked for the link
	byUser   = "user"   // the command line
	byViewer = "viewer"
	byOther  = "other"
)

// inlineDocument is up to how many bytes a content lies in its event; a larger one is a blob.
const inlineDocument = 64 << 10

// news is something that became of a document.
type news struct {
	paper   paper  // as it is known from then on
	change  string // "": nothing is told, only the asks are done
	by      string
	line    int64 // of the transcript; -1: none
	wish    string
	reason  string        // of a refusal
	content *file.Content // nil: none is told
	root    string        // absolute: the folder that content lies in
	notice  bool          // the session's Claude is told
	asks    []state.DocumentAsk
}

// documentEvent is an element of POST /api/documents.
type documentEvent struct {
	Path     string    `json:"path"`
	Change   string    `json:"change"`
	By       string    `json:"by"`
	AddedAt  time.Time `json:"added_at,omitzero"`
	At       time.Time `json:"at"`
	Version  int64     `json:"version,omitempty"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256,omitempty"`
	Encoding string    `json:"encoding,omitempty"`
	Content  *string   `json:"content,omitempty"`
	Blob     string    `json:"blob,omitempty"` // sha256 of one that was sent before
	TooLarge bool      `json:"too_large,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Wish     string    `json:"link_request,omitempty"`
	Line     *int64    `json:"line,omitempty"`
}

// compare orders documents by when they were linked.
func (p *paper) compare(other *paper) int {
	return cmp.Or(cmp.Compare(p.AddedAt, other.AddedAt), cmp.Compare(p.Path, other.Path))
}

// read takes in a new version.
func (p *paper) read(c *file.Content, by string) {
	p.Version++
	p.ChangedAt, p.By = time.Now().UnixMilli(), by
	p.Size, p.SHA256, p.TooLarge, p.Deleted = c.Size, c.SHA256, c.TooLarge, false
	p.at(c)
}

// at takes in which state of the file was read.
func (p *paper) at(c *file.Content) {
	p.Stat, p.doubtful = state.Stamp(c.Stamp), c.Torn || !c.Stamp.Settled(time.Now())
	p.seen, p.since, p.missed, p.problem = file.Stamp{}, time.Time{}, false, ""
}

// publish makes durable what became of a document, with the rows that tell the server. The caller holds work.
func (x *documents) publish(ctx context.Context, s site, n *news) error {
	d := state.Derivation{Asks: n.asks}
	fresh, sends := n.change != "" && n.change != refusedChange, x.sends(s)
	if fresh {
		n.paper.Dest = ""
		if sends {
			n.paper.Dest = s.dest
		}
		d.Documents = []state.Document{n.paper.Document}
	}
	if n.change != "" && sends {
		batches, err := x.batches(n)
		if err != nil {
			return err
		}
		d.File, d.Batches = s.file, batches
	}
	if n.notice {
		d.Pending = []state.Pending{{Session: s.session, Kind: state.PendingDocument, Path: n.paper.Path}}
	}
	errs, err := x.db.Derive(context.WithoutCancel(ctx), []state.Derivation{d}) // done, or not: whoever waits may leave
	if err == nil {
		err = errs[0]
	}
	if err != nil {
		return fmt.Errorf("keep document %s: %w", n.paper.Path, err)
	}
	x.complained = false
	if fresh {
		x.put(n.paper, n.change == linkedChange)
		x.ring()
	}
	return nil
}

// batches are the rows of some news: the content before the event that names it.
func (x *documents) batches(n *news) ([]outbox.Batch, error) {
	p := &n.paper
	e := documentEvent{
		Path: p.Path, Change: n.change, By: n.by, At: time.Now().UTC().Truncate(time.Millisecond), Version: p.Version,
		Size: p.Size, SHA256: p.SHA256, TooLarge: p.TooLarge, Wish: n.wish, Reason: n.reason,
	}
	if n.change == unlinkedChange || n.change == refusedChange {
		e.Size, e.SHA256, e.TooLarge = 0, "", false
	}
	if p.AddedAt > 0 {
		e.AddedAt = time.UnixMilli(p.AddedAt).UTC()
	}
	if n.line >= 0 {
		e.Line = &n.line
	}
	var batches []outbox.Batch
	if c := n.content; c != nil && !c.TooLarge {
		if c.Bytes != nil && len(c.Bytes) <= inlineDocument {
			e.inline(c.Bytes)
		} else {
			e.Blob = c.SHA256
			ref := outbox.BlobRef{SHA256: c.SHA256, Name: state.DocumentBlobs + p.Path, Media: contentMedia(c.Bytes), Size: c.Size, Root: n.root, Path: p.Path}
			batches = append(batches, x.packer.Blob(ref, c.Bytes))
		}
	}
	text, err := json.Marshal(&e)
	if err != nil {
		return nil, fmt.Errorf("write document event: %w", err)
	}
	return append(batches, x.packer.Documents([]json.RawMessage{text})), nil
}

// inline puts a content into its event.
func (e *documentEvent) inline(content []byte) {
	text := string(content)
	e.Encoding = "utf-8"
	if !isText(content) {
		e.Encoding, text = "base64", base64.StdEncoding.EncodeToString(content)
	}
	e.Content = &text
}

func isText(content []byte) bool {
	return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0
}

func contentMedia(content []byte) string {
	if content != nil && isText(content) {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
