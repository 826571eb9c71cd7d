package outbox

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// shown is how many bytes of a message fit into a status line.
const shown = 200

// problemCode returns the code in an error body; "" if there is none.
func problemCode(text []byte) string {
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &body) != nil {
		return ""
	}
	return body.Error.Code
}

// problemMessage returns the message in an error body; "" if there is none.
func problemMessage(text []byte) string {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(text, &outer) != nil {
		return ""
	}
	words := outer.Message
	var inner struct {
		Message string `json:"message"`
	}
	var plain string
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil && inner.Message != "":
		words = inner.Message
	case json.Unmarshal(outer.Error, &plain) == nil && plain != "":
		words = plain
	}
	return short(strings.Join(strings.Fields(words), " "))
}

// RedirectedTo returns where an answer sends its reader, in quotes, as far as it fits into a status line.
func RedirectedTo(h http.Header) string { return strconv.Quote(short(h.Get("Location"))) }

// short cuts a text of a server for a status line.
func short(text string) string {
	if len(text) <= shown {
		return text
	}
	return strings.ToValidUTF8(text[:shown], "") + "…"
}
