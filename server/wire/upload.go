package wire

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
)

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
