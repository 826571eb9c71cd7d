package document

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
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

// What happens to a document, as on the wire.
const (
	kindLinked   = "linked" // with the content at that time
	kindUnlinked = "unlinked"
	kindModified = "modified"
	kindDeleted  = "deleted"
	kindRefused  = "refused" // only as the answer to a viewer
)

// Who changed a document, as on the wire.
const (
	byClaude = "claude" // one of its tools, whose result is in the transcript
	byMCP    = "mcp"    // Claude asked for the link
	byUser   = "user"   // the command line
	byViewer = "viewer"
	byOther  = "other"
)

// maxInline is the largest content that is sent inside its event, in bytes. A larger one is a blob.
const maxInline = 64 << 10

// event is an element of POST /api/documents.
type event struct {
	Path      string    `json:"path"`
	Change    string    `json:"change"`
	By        string    `json:"by"`
	AddedAt   time.Time `json:"added_at,omitzero"`
	At        time.Time `json:"at"`
	Version   int64     `json:"version,omitempty"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256,omitempty"`
	Encoding  string    `json:"encoding,omitempty"`
	Content   *string   `json:"content,omitempty"`
	Blob      string    `json:"blob,omitempty"` // SHA-256 of a blob that was sent before
	TooLarge  bool      `json:"too_large,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	RequestID string    `json:"link_request,omitempty"`
	Line      *int64    `json:"line,omitempty"`
}

// newEvent returns the event of a change, without content.
func newEvent(c *change) event {
	d := &c.document
	e := event{
		Path: d.Path, Change: c.kind, By: c.by, At: time.Now().UTC().Truncate(time.Millisecond), Version: d.Version,
		Size: d.Size, SHA256: d.SHA256, TooLarge: d.TooLarge, RequestID: c.requestID, Reason: c.reason,
	}
	if c.kind == kindUnlinked || c.kind == kindRefused {
		e.Size, e.SHA256, e.TooLarge = 0, "", false
	}
	if d.AddedAt > 0 {
		e.AddedAt = time.UnixMilli(d.AddedAt).UTC()
	}
	if c.line >= 0 {
		e.Line = &c.line
	}
	return e
}

// inline puts a content into its event.
func (e *event) inline(content []byte) {
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

// observer finds edits by Claude's tools, and Claude's requests for links, in transcripts. It acts only on watched
// lines, which include those written while the daemon was away. Its fields belong to the current step.
type observer struct {
	tracker *Tracker

	watched bool   // the step has lines that were just written
	session string // whose documents are meant
	edits   []edit
	asks    []projection.LinkRequest
}

var _ derive.SaveObserver = (*observer)(nil)

// Observer returns the observer that tells t what happens in transcripts.
func (t *Tracker) Observer() derive.SaveObserver { return &observer{tracker: t} }

// maxToolID limits the part of a tool use id that tells a request from others of its line, in bytes. It is part of a
// key.
const maxToolID = 200

// Begin starts a step.
func (o *observer) Begin(s *derive.FoldStep) {
	o.session = transcript.MainSession(s.Facts.Stream.SessionID, s.Facts.Stream.Parent)
	o.edits, o.asks, o.watched = o.edits[:0], nil, false
}

// Event records edits and requests.
func (o *observer) Event(s *derive.FoldStep, e *session.Event, watched bool) {
	if !watched {
		return
	}
	o.watched = true
	switch e.Kind {
	case session.FileEvent:
		o.edits = append(o.edits, edit{e.Path, e.Line})
	case session.LinkEvent, session.UnlinkEvent:
		link := e.Kind == session.LinkEvent
		if !transcript.ValidSession(o.session) ||
			!o.tracker.answers.take(e.Nonce, link, e.Path, answerPlace{o.session, e.Line}) {
			return
		}
		o.asks = append(o.asks, projection.LinkRequest{
			Session: o.session, Line: e.Line, Tool: e.ToolID[:min(len(e.ToolID), maxToolID)],
			Link: link, Path: e.Path, Base: s.Session.Summary().Cwd,
		})
	}
}

// End passes edits to the tracker at once: the files show them, even if the step fails. Requests wait until the step is
// durable.
func (o *observer) End(s *derive.FoldStep) error {
	s.Effects.LinkRequests = append(s.Effects.LinkRequests, o.asks...)
	if o.watched {
		o.tracker.lastWritten.Store(time.Now().UnixMilli())
	}
	o.tracker.noteActivity(o.session, o.edits)
	return nil
}

// Saved passes durable requests to the tracker.
func (o *observer) Saved(d *projection.Derivation) { o.tracker.noteRequests(d.LinkRequests) }

// noteActivity makes the checks of a session's documents earlier, because the session continues or its tools changed
// files.
func (t *Tracker) noteActivity(session string, edits []edit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[session]
	if s == nil || !s.needsChecks() {
		return
	}
	now := time.Now()
	if s.active = now; s.due.After(now.Add(t.activeInterval)) || s.unsent() {
		s.due = now
		t.bell.Ring()
	}
	if len(edits) > 0 {
		s.edits = append(s.edits, edits...)
		t.bell.Ring()
	}
}

func (t *Tracker) noteRequests(asks []projection.LinkRequest) {
	if len(asks) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range asks {
		s := t.session(asks[i].Session)
		s.requested, s.active = true, time.Now()
	}
	t.bell.Ring()
}
