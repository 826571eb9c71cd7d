package wire

import (
	"crypto/sha256"
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
