package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

var errNotEntries = errors.New("not JSON objects joined by commas")

// splitEntries finds the entries in what a batch holds: JSON objects joined by single commas. It returns copies.
func splitEntries(raw []byte) ([][]byte, error) {
	var list []json.RawMessage
	if json.Unmarshal(slices.Concat([]byte{'['}, raw, []byte{']'}), &list) != nil {
		return nil, errNotEntries
	}
	entries, length := make([][]byte, len(list)), max(0, len(list)-1)
	for i, e := range list {
		if !bytes.HasPrefix(e, []byte{'{'}) {
			return nil, errNotEntries
		}
		entries[i] = e
		length += len(e)
	}
	if length != len(raw) {
		return nil, errNotEntries
	}
	return entries, nil
}

// lineIndex reads N from an entry that starts with {"line_index":N. White space may follow: an object without members
// keeps what is between its braces.
func lineIndex(entry []byte) (line int64, ok bool) {
	digits, ok := bytes.CutPrefix(entry, []byte(`{"line_index":`))
	if !ok {
		return 0, false
	}
	const most = 18 // digits that always fit an int64
	n := 0
	for n < len(digits) && n < most && digits[n] >= '0' && digits[n] <= '9' {
		line = line*10 + int64(digits[n]-'0')
		n++
	}
	return line, n > 0 && n < len(digits) && bytes.IndexByte([]byte(",} \t\r"), digits[n]) >= 0
}
