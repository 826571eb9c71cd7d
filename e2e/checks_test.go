//go:build unix

package e2e

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestChecksCanFail: what the cases compare with must itself see what is wrong.
func TestChecksCanFail(t *testing.T) {
	t.Parallel()
	file := []byte("{\"a\":1}\n\n {\"b\":2}\r\nno JSON\n{\"cut\":")
	whole := map[int64][]byte{0: []byte(`{"a":1}`), 2: []byte(`{"b":2}`)}
	wrong := objectsMissing(file, whole)
	kit.Check(t, len(wrong) == 0, "a whole copy is called wrong: %v", wrong)
	for name, lines := range map[string]map[int64][]byte{
		"missing": {0: whole[0]}, "other bytes": {0: whole[0], 2: []byte(`{"b": 2}`)}, "moved": {0: whole[0], 1: whole[2]},
	} {
		wrong := objectsMissing(file, lines)
		kit.Check(t, len(wrong) == 1, "%s: %v, want one complaint", name, wrong)
	}
	for entry, want := range map[string]string{
		`{"line_index":12,"a":1}`: `{"a":1}`, `{"line_index":12}`: `{}`, `{"line_index":12 }`: `{ }`,
		`{"line_index":12,"line_index":7}`: `{"line_index":7}`,
	} {
		index, raw, err := splitEntry([]byte(entry))
		kit.Check(t, err == nil && index == 12 && string(raw) == want, "%s splits into %d, %s, %v", entry, index, raw, err)
	}
	for _, entry := range []string{`{"a":1,"line_index":12}`, `{"line_index":"12"}`, `{"line_index":-1}`, `{ "line_index":1}`} {
		_, _, err := splitEntry([]byte(entry))
		kit.Check(t, err != nil, "%s is taken for an entry", entry)
	}
}

// TestPlainServerIsStrict: requests that the base protocol does not allow are refused, and so is the extension.
func TestPlainServerIsStrict(t *testing.T) {
	t.Parallel()
	const good = `{"project_hash":"p","session_id":"s","entries":[{"line_index":0,"a":1}]}`
	many := strings.TrimSuffix(strings.Repeat(`{"line_index":1},`, 101), ",")
	tests := []struct {
		name, body string
		change     func(r *http.Request)
		ok         bool
	}{
		{"good", good, nil, true},
		{"the extension", strings.Replace(good, "]", `],"ccship":{"v":1}`, 1), nil, false},
		{"no entries", `{"project_hash":"p","session_id":"s","entries":[]}`, nil, false},
		{"101 entries", `{"project_hash":"p","session_id":"s","entries":[` + many + `]}`, nil, false},
		{"twice the same line", `{"project_hash":"p","session_id":"s","entries":[{"line_index":1},{"line_index":1}]}`, nil, false},
		{"no session", strings.Replace(good, `"s"`, `""`, 1), nil, false},
		{"not JSON", good[1:], nil, false},
		{"wrong key", good, func(r *http.Request) { r.Header.Set("X-API-Key", "other") }, false},
		{"compressed", good, func(r *http.Request) { r.Header.Set("Content-Encoding", "zstd") }, false},
		{"another header", good, func(r *http.Request) { r.Header.Set("User-Agent", "ccship/1") }, false},
		{"wrong type", good, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, false},
	}
	for _, test := range tests {
		s := newPlainServer(t, "k")
		r := httptest.NewRequest(http.MethodPost, "/api/conversations", nil)
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"k"}}
		if test.change != nil {
			test.change(r)
		}
		_, err := s.store(r, []byte(test.body))
		kit.Check(t, (err == nil) == test.ok, "%s: %v", test.name, err)
	}
}

// TestCorpus: invented conversations are valid, of the asked sizes, and the same for the same seed.
func TestCorpus(t *testing.T) {
	t.Parallel()
	a, b := newConversation(1, "/w"), newConversation(1, "/w")
	data := a.mixed(2000)
	kit.Check(t, bytes.Equal(data, b.mixed(2000)) && !bytes.Equal(data, newConversation(2, "/w").mixed(2000)),
		"the seed does not decide the bytes")
	for line := range bytes.Lines(data) {
		kit.Require(t, isObject(bytes.TrimSuffix(line, []byte("\n"))), "not a record: %.200q", line)
	}
	kit.Equal(t, "Count", bytes.Count(data, []byte("\n")), 2000)
	for _, size := range []int{1000, 4000, 1 << 20} {
		n := len(a.line(size))
		kit.Check(t, n >= size*9/10-200 && n <= size*3/2+500, "a line of %d bytes was asked for, it has %d", size, n)
	}
}
