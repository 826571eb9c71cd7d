package thread

import (
	"bytes"
	"encoding/json"
)

// maxFew is how many elements of a list in a record are read: no list that Claude Code writes is nearly as long, and an
// element takes many times as much memory as the shortest has bytes.
const maxFew = 2000

// few is the first elements of a JSON array. Anything else is an empty list.
type few[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (f *few[T]) UnmarshalJSON(raw []byte) error {
	*f = nil
	d := json.NewDecoder(bytes.NewReader(raw))
	begin, _ := d.Token() // nil for what is no JSON
	for begin == json.Delim('[') && d.More() && len(*f) < maxFew {
		var x T
		if err := d.Decode(&x); err != nil {
			return err
		}
		*f = append(*f, x)
	}
	return nil
}
