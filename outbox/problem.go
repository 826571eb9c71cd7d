package outbox

import (
	"encoding/json"
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
	words = strings.Join(strings.Fields(words), " ")
	if len(words) > shown {
		words = strings.ToValidUTF8(words[:shown], "") + "…"
	}
	return words
}
