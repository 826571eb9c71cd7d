//go:build unix

package viewer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// stream is a transcript as a client tells the server of it.
type stream struct {
	id, parent    string
	machine, host string
	project, cwd  string
	generation    int64
	rewoundTo     int64
}

// requestBytes is about how much one request holds.
const requestBytes = 4 << 20

// send posts the lines of a generation, in as many requests as it takes.
func (s *site) send(key string, x stream, lines []string) error {
	for from := 0; from < len(lines) || from == 0; {
		to, size := from, 0
		for ; to < len(lines) && size < requestBytes; to++ {
			size += len(lines[to])
		}
		body, err := x.body(lines[from:to], x.rewoundTo+int64(from))
		if err != nil {
			return err
		}
		if err := s.posts("POST", "/api/conversations", key, body); err != nil {
			return err
		}
		if from = to; len(lines) == 0 {
			break
		}
	}
	return nil
}

// body is one request. Lines that are no objects travel as opaque ones.
func (x stream) body(lines []string, first int64) ([]byte, error) {
	head := x.head()
	head["generation"], head["rewound_to"], head["to"] = x.generation, x.rewoundTo, object{"line": first + int64(len(lines))}
	entries := make([]any, len(lines))
	for i, l := range lines {
		n := first + int64(i)
		entries[i] = object{"line_index": n, "type": "ccship.opaque", "encoding": "base64", "data": []byte(l)}
		if strings.HasPrefix(l, "{") && json.Valid([]byte(l)) {
			entries[i] = json.RawMessage(fmt.Sprintf(`{"line_index":%d,%s`, n, l[1:]))
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // lines travel as they are
	if err := e.Encode(object{"session_id": x.id, "project_hash": "hash-of-" + x.project, "ccship": head, "entries": entries}); err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	return b.Bytes(), nil
}
