package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
)

const (
	// MaxItemsBody bounds a decompressed request of checkpoints or documents, in bytes, and maxItems how many it has.
	MaxItemsBody = 8 << 20
	maxItems     = 10_000
	// MaxUploadBody bounds a decompressed request that starts or ends an upload, in bytes.
	MaxUploadBody = 1 << 20
	// maxInline bounds one document's content in a request, in bytes; a longer one comes as a file.
	maxInline = 1 << 20
	// maxShort and maxSummary bound a checkpoint's names and its summary, in bytes, maxActive its files.
	maxShort   = 1 << 10
	maxSummary = 64 << 10
	maxActive  = 1000
	// maxVersion bounds a document's versions: their numbers are added up.
	maxVersion = 1 << 40
)

// streamHead is what requests with artifacts have in common with those with lines.
type streamHead struct {
	SessionID   string     `json:"session_id"`
	ProjectHash *string    `json:"project_hash"`
	Ccship      *extension `json:"ccship"`
}

// head returns it checked. An error is a *RefusalError.
func (p *streamHead) head() (server.Head, error) {
	h := server.Head{SessionID: p.SessionID}
	if p.SessionID == "" {
		return h, BadRequest("bad_request", "session_id is missing or empty")
	}
	if err := CheckName(p.SessionID, "session_id"); err != nil {
		return h, err
	}
	if p.ProjectHash != nil {
		if err := CheckName(*p.ProjectHash, "project_hash"); err != nil {
			return h, err
		}
		h.ProjectHash = *p.ProjectHash
	}
	if p.Ccship == nil {
		return h, BadRequest("bad_extension", "ccship is missing")
	}
	if err := p.Ccship.fill(&h); err != nil {
		return h, err
	}
	return h, CheckName(h.Parent, "ccship: a name")
}

// checkMoment refuses implausible times, which a database might not be able to store.
func checkMoment(t time.Time, name string) error {
	if y := t.UTC().Year(); y < 1971 || y > 9999 {
		return BadRequest("bad_item", name+" is missing or out of range")
	}
	return nil
}

// ParseSum reads a hash: 64 lower-case hex digits.
func ParseSum(s string) ([]byte, error) {
	sum, err := hex.DecodeString(s)
	if err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != s {
		return nil, BadRequest("bad_item", "a hash is not 64 hex digits in lower case")
	}
	return sum, nil
}

// checkItems reads a request's items. An error is a *RefusalError that names the item.
func checkItems[I, T any](items *few[I], name string, check func(*I) (T, error)) ([]T, error) {
	if items == nil {
		return nil, BadRequest("bad_request", name+" is missing")
	}
	if len(*items) > maxItems {
		return nil, Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request has more than %d items", maxItems))
	}
	out := make([]T, 0, len(*items))
	for i := range *items {
		x, err := check(&(*items)[i])
		if no, ok := errors.AsType[*RefusalError](err); ok {
			return nil, Refuse(no.Status, no.Code, fmt.Sprintf("item %d: %s", i, no.Message))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// decode reads a whole body into to.
func decode(body []byte, to any) error {
	if err := json.Unmarshal(body, to); err != nil {
		return BadRequest("bad_json", fmt.Sprintf("the body is not what this call takes: %v", err))
	}
	return nil
}

type uploadRequest struct {
	streamHead
	Size  int64  `json:"size"`
	Media string `json:"media_type"`
	Name  string `json:"name"`
}

// ParseUpload reads the body of a request that starts or ends the upload of the file whose sha256 is sum, in hex. The
// caller sets Owner and At. An error is a *RefusalError.
func ParseUpload(body []byte, sum string) (*server.Upload, error) {
	var q uploadRequest
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	u := &server.Upload{Size: q.Size, Name: q.Name, Media: q.Media}
	raw, err := ParseSum(sum)
	if err != nil {
		return nil, err
	}
	copy(u.SHA256[:], raw)
	if u.Head, err = q.head(); err != nil {
		return nil, err
	}
	if err := server.CheckPath(u.Name); err != nil {
		return nil, BadRequest("bad_request", "name: "+err.Error())
	}
	if len(u.Media) > maxShort || !utf8.ValidString(u.Media) {
		return nil, BadRequest("bad_request", "media_type is too long or not UTF-8")
	}
	if u.Size < 0 {
		return nil, BadRequest("bad_request", "size is negative")
	}
	if u.Size > server.MaxBlob {
		return nil, Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the file is larger than %d bytes", server.MaxBlob))
	}
	return u, nil
}

// ParseCheckpoints reads the body of POST /api/checkpoints. The caller sets Owner and Received. An error is a
// *RefusalError.
func ParseCheckpoints(body []byte) (*server.CheckpointBatch, error) {
	var q struct {
		streamHead
		Items *few[checkpointItem] `json:"checkpoints"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	head, err := q.head()
	if err != nil {
		return nil, err
	}
	list, err := checkItems(q.Items, "checkpoints", (*checkpointItem).checkpoint)
	if err != nil {
		return nil, err
	}
	return &server.CheckpointBatch{Head: head, List: list}, nil
}

type checkpointItem struct {
	server.Checkpoint
	ActiveFiles few[string] `json:"active_files"`
	Line        *int64      `json:"line"`
}

// checkpoint checks an item. An error is a *RefusalError.
func (i *checkpointItem) checkpoint() (server.Checkpoint, error) {
	c := i.Checkpoint
	c.SessionID, c.Machine, c.ActiveFiles, c.Line = "", "", i.ActiveFiles, -1 // the head says whose it is
	if i.Line != nil {
		c.Line = *i.Line
	}
	for _, n := range []int64{c.TokensUsed, c.TokenBudget, c.Generation, c.Line + 1} {
		if n < 0 || n > MaxNumber {
			return c, BadRequest("bad_item", "a number is negative or out of range")
		}
	}
	for _, short := range []string{c.ID, c.PortID, c.Trigger, c.ContextHash} {
		if len(short) > maxShort {
			return c, BadRequest("bad_item", "a name is too long")
		}
	}
	if c.ID == "" || c.Trigger == "" {
		return c, BadRequest("bad_item", "id and trigger_type must be set")
	}
	if len(c.Summary) > maxSummary || len(c.ActiveFiles) > maxActive {
		return c, BadRequest("bad_item", "summary or active_files is too long")
	}
	for _, file := range c.ActiveFiles {
		if len(file) > server.MaxPath {
			return c, BadRequest("bad_item", "a path is too long")
		}
	}
	return c, checkMoment(c.Created, "created_at")
}

// ParseDocuments reads the body of POST /api/documents. The caller sets Owner and Received. An error is a
// *RefusalError.
func ParseDocuments(body []byte) (*server.DocumentBatch, error) {
	var q struct {
		streamHead
		Items *few[eventItem] `json:"events"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	head, err := q.head()
	if err != nil {
		return nil, err
	}
	events, err := checkItems(q.Items, "events", (*eventItem).event)
	if err != nil {
		return nil, err
	}
	return &server.DocumentBatch{Head: head, Events: events}, nil
}

type eventItem struct {
	server.DocumentEvent
	SHA256   string  `json:"sha256"`
	Encoding string  `json:"encoding"`
	Content  *string `json:"content"`
	Blob     string  `json:"blob"`
	Line     *int64  `json:"line"`
}

// event checks an item. An error is a *RefusalError.
func (i *eventItem) event() (server.DocumentEvent, error) {
	e := i.DocumentEvent
	e.Line = -1
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
func (i *eventItem) check(e *server.DocumentEvent) error {
	switch e.Change {
	case server.Linked, server.Unlinked, server.Modified, server.Deleted:
		if err := server.CheckPath(e.Path); err != nil {
			return BadRequest("bad_item", err.Error())
		}
	case server.Refused: // whatever was asked for
	default:
		return BadRequest("bad_item", fmt.Sprintf("change %.20q is not known here", e.Change))
	}
	if e.By == "" {
		e.By = "other"
	}
	if e.Version < 0 || e.Version > maxVersion || e.Size < 0 || e.Size > MaxNumber || e.Line < -1 || e.Line > MaxNumber {
		return BadRequest("bad_item", "a number is negative or out of range")
	}
	if len(e.By) > maxShort || len(e.LinkRequest) > maxShort || len(e.Reason) > maxSummary ||
		len(e.Path) > server.MaxPath {
		return BadRequest("bad_item", "a text is too long")
	}
	return nil
}

// content decodes what the event brings, which must be what it says it is.
func (i *eventItem) content(e *server.DocumentEvent) (err error) {
	sum := i.SHA256
	if sum == "" {
		sum = i.Blob
	}
	if i.Blob != "" && i.Blob != sum || i.Blob != "" && i.Content != nil {
		return BadRequest("bad_item", "blob says otherwise than sha256 or content")
	}
	if sum != "" {
		if e.SHA256, err = ParseSum(sum); err != nil {
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
			return BadRequest("bad_item", "content is not base64")
		}
	default:
		return BadRequest("bad_item", fmt.Sprintf("encoding %.20q is not known here", i.Encoding))
	}
	if len(e.Content) > maxInline {
		return Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("a content is larger than %d bytes; it can come as a file", maxInline))
	}
	if got := sha256.Sum256(e.Content); int64(len(e.Content)) != e.Size || !bytes.Equal(got[:], e.SHA256) {
		return BadRequest("bad_item", "content has another size or hash than it says")
	}
	return nil
}
