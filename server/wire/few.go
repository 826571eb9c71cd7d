package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// few is a JSON array of which one element more than maxItems is read at most: an element takes many times as much
// memory as the shortest has bytes.
type few[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (f *few[T]) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return fmt.Errorf("%.20q is not an array", raw)
	}
	for *f = (*f)[:0]; d.More() && len(*f) <= maxItems; {
		var x T
		if err := d.Decode(&x); err != nil {
			return err
		}
		*f = append(*f, x)
	}
	return nil
}

// maxParts is how many parts the arrays of a request may have that hold no texts.
const maxParts = 1 << 19

// CheckParts refuses a body whose arrays have so many small parts that reading them would take all memory.
func CheckParts(body []byte) error {
	if bytes.Count(body, []byte(",")) > maxParts {
		return Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request has more than %d parts: send it in several", maxParts))
	}
	return nil
}
