package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"

	"github.com/ccship/ccship/server"
)

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
