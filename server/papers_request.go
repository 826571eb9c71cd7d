package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"
)

const (
	// maxPapers bounds a decompressed request of checkpoints or documents, in bytes, and maxPaperItems what it holds.
	maxPapers     = 8 << 20
	maxPaperItems = 10_000
	// maxInline bounds one document's content in a request, in bytes; a longer one comes as a file.
	maxInline = 1 << 20
	// maxShort and maxSummary bound a checkpoint's names and its summary, in bytes, maxActive its files.
	maxShort   = 1 << 10
	maxSummary = 64 << 10
	maxActive  = 1000
	// maxVersion bounds a document's versions: their numbers are added up.
	maxVersion = 1 << 40
)

// paperHead is what requests of papers have in common with those of lines.
type paperHead struct {
	SessionID   string     `json:"session_id"`
	ProjectHash *string    `json:"project_hash"`
	Ccship      *extension `json:"ccship"`
}

// head checks it. An error is a refusal.
func (p *paperHead) head() (Head, error) {
	b := Batch{Head: Head{SessionID: p.SessionID}}
	if p.SessionID == "" {
		return b.Head, badRequest("bad_request", "session_id is missing or empty")
	}
	if err := checkName(p.SessionID, "session_id"); err != nil {
		return b.Head, err
	}
	if p.ProjectHash != nil {
		if err := checkName(*p.ProjectHash, "project_hash"); err != nil {
			return b.Head, err
		}
		b.Head.ProjectHash = *p.ProjectHash
	}
	if p.Ccship == nil {
		return b.Head, badRequest("bad_extension", "ccship is missing")
	}
	return b.Head, p.Ccship.describe(&b.Head)
}

// describe puts what the extension says of the stream into a head. An error is a refusal.
func (x *extension) describe(h *Head) error {
	b := Batch{Head: *h}
	if err := x.apply(&b); err != nil {
		return err
	}
	*h = b.Head
	return checkName(h.Parent, "ccship: a name")
}

// readPapers reads a request of at most max bytes, decompressed, into to.
func (s *Server) readPapers(w http.ResponseWriter, r *http.Request, max int64, to any) error {
	src := s.newSource(w, r)
	src.limit(w, r, max)
	buf, err := s.bodies.read(r.Context(), src, r.Header.Get("Content-Encoding"), s.large)
	if err != nil {
		return err
	}
	defer s.bodies.release(buf)
	if err := json.Unmarshal(buf.Bytes(), to); err != nil {
		return badRequest("bad_json", fmt.Sprintf("the body is not what this call takes: %v", err))
	}
	return nil
}

type checkpointItem struct {
	ID          string    `json:"id"`
	PortID      string    `json:"port_id"`
	TokensUsed  int64     `json:"tokens_used"`
	TokenBudget int64     `json:"token_budget"`
	Trigger     string    `json:"trigger_type"`
	ContextHash string    `json:"context_hash"`
	Summary     string    `json:"summary"`
	ActiveFiles []string  `json:"active_files"`
	Created     time.Time `json:"created_at"`
	Generation  int64     `json:"generation"`
	Line        *int64    `json:"line"`
}

// checkpoint checks an item. An error is a refusal.
func (i *checkpointItem) checkpoint() (Checkpoint, error) {
	c := Checkpoint{ID: i.ID, PortID: i.PortID, TokensUsed: i.TokensUsed, TokenBudget: i.TokenBudget, Trigger: i.Trigger,
		ContextHash: i.ContextHash, Summary: i.Summary, ActiveFiles: i.ActiveFiles, Created: i.Created,
		Generation: i.Generation, Line: -1}
	if i.Line != nil {
		c.Line = *i.Line
	}
	for _, n := range []int64{c.TokensUsed, c.TokenBudget, c.Generation, c.Line + 1} {
		if n < 0 || n > maxNumber {
			return c, badRequest("bad_item", "a number is negative or out of range")
		}
	}
	for _, short := range []string{c.ID, c.PortID, c.Trigger, c.ContextHash} {
		if len(short) > maxShort {
			return c, badRequest("bad_item", "a name is too long")
		}
	}
	if c.ID == "" || c.Trigger == "" {
		return c, badRequest("bad_item", "id and trigger_type must be set")
	}
	if len(c.Summary) > maxSummary || len(c.ActiveFiles) > maxActive {
		return c, badRequest("bad_item", "summary or active_files is too long")
	}
	for _, file := range c.ActiveFiles {
		if len(file) > maxPath {
			return c, badRequest("bad_item", "a path is too long")
		}
	}
	return c, checkMoment(c.Created, "created_at")
}

// checkMoment refuses times nobody means, which a database could not keep.
func checkMoment(t time.Time, name string) error {
	if y := t.UTC().Year(); y < 1971 || y > 9999 {
		return badRequest("bad_item", name+" is missing or out of range")
	}
	return nil
}

type eventItem struct {
	Path     string    `json:"path"`
	Change   string    `json:"change"`
	By       string    `json:"by"`
	AddedAt  time.Time `json:"added_at"`
	At       time.Time `json:"at"`
	Version  int64     `json:"version"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
	Encoding string    `json:"encoding"`
	Content  *string   `json:"content"`
	Blob     string    `json:"blob"`
	TooLarge bool      `json:"too_large"`
	Reason   string    `json:"reason"`
	Wish     string    `json:"link_request"`
	Line     *int64    `json:"line"`
}

// event checks an item. An error is a refusal.
func (i *eventItem) event() (DocumentEvent, error) {
	e := DocumentEvent{Path: i.Path, Change: i.Change, By: i.By, AddedAt: i.AddedAt, At: i.At, Version: i.Version,
		Size: i.Size, TooLarge: i.TooLarge, Reason: i.Reason, Wish: i.Wish, Line: -1}
	if i.Line != nil {
		e.Line = *i.Line
	}
	if err := i.check(&e); err != nil {
		return e, err
	}
	if err := checkMoment(e.At, "at"); err != nil {
		return e, err
	}
	if !e.AddedAt.IsZero() {
		if err := checkMoment(e.AddedAt, "added_at"); err != nil {
			return e, err
		}
	}
	return e, i.content(&e)
}

// check looks at everything but times and content.
func (i *eventItem) check(e *DocumentEvent) error {
	switch e.Change {
	case Linked, Unlinked, Modified, Deleted:
		if err := CheckPath(e.Path); err != nil {
			return badRequest("bad_item", err.Error())
		}
	case Refused: // whatever was asked for
	default:
		return badRequest("bad_item", fmt.Sprintf("change %.20q is not known here", e.Change))
	}
	if e.By == "" {
		e.By = "other"
	}
	if e.Version < 0 || e.Version > maxVersion || e.Size < 0 || e.Size > maxNumber || e.Line < -1 || e.Line > maxNumber {
		return badRequest("bad_item", "a number is negative or out of range")
	}
	if len(e.By) > maxShort || len(e.Wish) > maxShort || len(e.Reason) > maxSummary || len(e.Path) > maxPath {
		return badRequest("bad_item", "a text is too long")
	}
	return nil
}

// content decodes what the event brings, which must be what it says it is.
func (i *eventItem) content(e *DocumentEvent) (err error) {
	sum := i.SHA256
	if sum == "" {
		sum = i.Blob
	}
	if i.Blob != "" && i.Blob != sum || i.Blob != "" && i.Content != nil {
		return badRequest("bad_item", "blob says otherwise than sha256 or content")
	}
	if sum != "" {
		if e.SHA256, err = parseSum(sum); err != nil {
			return err
		}
	}
	if i.Content == nil {
		return nil
	}
	switch i.Encoding {
	case "", "utf-8":
		e.Content = []byte(*i.Content)
	case "base64":
		if e.Content, err = base64.StdEncoding.DecodeString(*i.Content); err != nil {
			return badRequest("bad_item", "content is not base64")
		}
	default:
		return badRequest("bad_item", fmt.Sprintf("encoding %.20q is not known here", i.Encoding))
	}
	if len(e.Content) > maxInline {
		return &refusal{http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("a content is larger than %d bytes; it can come as a file", maxInline)}
	}
	if got := sha256.Sum256(e.Content); int64(len(e.Content)) != e.Size || !bytes.Equal(got[:], e.SHA256) {
		return badRequest("bad_item", "content has another size or hash than it says")
	}
	return nil
}

// parseSum reads a hash: 64 lower-case hex digits.
func parseSum(s string) ([]byte, error) {
	sum, err := hex.DecodeString(s)
	if err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != s {
		return nil, badRequest("bad_item", "a hash is not 64 hex digits in lower case")
	}
	return sum, nil
}

type uploadRequest struct {
	paperHead
	Size  int64  `json:"size"`
	Media string `json:"media_type"`
	Name  string `json:"name"`
}

// upload checks a request about the file whose hash the address has. An error is a refusal.
func (q *uploadRequest) upload(sum string, owner int64) (*Upload, error) {
	u := &Upload{Owner: owner, Size: q.Size, Name: q.Name, Media: q.Media, At: time.Now()}
	raw, err := parseSum(sum)
	if err != nil {
		return nil, err
	}
	copy(u.SHA256[:], raw)
	if u.Head, err = q.head(); err != nil {
		return nil, err
	}
	if err := CheckPath(u.Name); err != nil {
		return nil, badRequest("bad_request", "name: "+err.Error())
	}
	if len(u.Media) > maxShort || !utf8.ValidString(u.Media) {
		return nil, badRequest("bad_request", "media_type is too long or not UTF-8")
	}
	if u.Size < 0 {
		return nil, badRequest("bad_request", "size is negative")
	}
	if u.Size > MaxBlob {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the file is larger than %d bytes", MaxBlob)}
	}
	return u, nil
}
