//go:build unix

package viewer_test

import (
	"encoding/json"
	"fmt"
	"net/http"
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
		status, answer, err := s.ask("POST", "/api/conversations", key, "", body)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("send %s: %d %s", x.id, status, answer)
		}
		if from = to; len(lines) == 0 {
			break
		}
	}
	return nil
}

// body is one request. Lines that are no objects travel as opaque ones.
func (x stream) body(lines []string, first int64) ([]byte, error) {
	var parent *string
	if x.parent != "" {
		parent = &x.parent
	}
	head, err := json.Marshal(map[string]any{"v": 1, "machine": x.machine, "host": x.host, "epoch": "epoch-of-" + x.machine,
		"path": strings.ReplaceAll(x.cwd, "/", "-") + "/" + x.id + ".jsonl", "cwd": x.cwd, "project": x.project, "parent_session_id": parent,
		"generation": x.generation, "rewound_to": x.rewoundTo, "to": map[string]any{"line": first + int64(len(lines))}})
	if err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	id, err := json.Marshal(x.id)
	if err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	hash, err := json.Marshal("hash-of-" + x.project)
	if err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"session_id":%s,"project_hash":%s,"ccship":%s,"entries":[`, id, hash, head)
	for i, l := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		n := first + int64(i)
		if strings.HasPrefix(l, "{") && json.Valid([]byte(l)) {
			fmt.Fprintf(&b, `{"line_index":%d,%s`, n, l[1:])
			continue
		}
		opaque, err := json.Marshal([]byte(l))
		if err != nil {
			return nil, fmt.Errorf("write a request: %w", err)
		}
		fmt.Fprintf(&b, `{"line_index":%d,"type":"ccship.opaque","encoding":"base64","data":%s}`, n, opaque)
	}
	b.WriteString("]}")
	return []byte(b.String()), nil
}
