package sink_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/sink"
)

// field is a length-delimited protobuf field.
func field(number protowire.Number, value string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value))
}

// TestDialects: what every protocol carries is found whole, counted the same without looking inside, and compared.
func TestDialects(t *testing.T) {
	one, two := sink.Line(1, 200, "/work"), sink.Line(2, 100, "/work")
	record := func(line string) string { return field(2, "\x09abcdefgh"+field(3, "INFO")+field(5, field(1, line))) }
	bodies := map[string]string{
		sink.Conversations: `{"session_id":"s","entries":[{"line_index":0,` + one[1:] + `,{"line_index":71,` + two[1:] + `]}`,
		sink.OTLP:          field(1, field(1, "resource")+field(2, record(one)+record(two))),
		sink.Raw:           one + "\n" + two,
	}
	for path, body := range bodies {
		for _, keep := range []bool{true, false} {
			s := sink.New()
			if keep {
				s.Keep()
			}
			post(t, s.URL+path, body)
			if s.Lines.Load() != 2 || s.Marked(1).IsZero() || s.Marked(2).IsZero() || !s.Marked(3).IsZero() {
				t.Errorf("%s, keep %t: %d lines, marks %v %v", path, keep, s.Lines.Load(), s.Marked(1), s.Marked(2))
			}
			if keep {
				compare(t, s, path, map[string]bool{one: true, two: true}, 0, 0, 0)
				compare(t, s, path, map[string]bool{one: true, "other": true}, 1, 0, 1)
				post(t, s.URL+path, body)
				compare(t, s, path, map[string]bool{one: true, two: true}, 0, 2, 0)
			}
			s.Close()
		}
	}
}

func compare(t *testing.T, s *sink.Sink, path string, ever map[string]bool, lost, again, wrong int) {
	t.Helper()
	if l, a, w := s.Compare(ever); l != lost || a != again || w != wrong {
		t.Errorf("%s: %d lost, %d again, %d wrong, want %d %d %d", path, l, a, w, lost, again, wrong)
	}
}

func post(t *testing.T, url, body string) {
	t.Helper()
	answer, err := http.Post(url, "application/octet-stream", strings.NewReader(body))
	kit.Require(t, err == nil, "%v", err)
	err = answer.Body.Close()
	kit.Require(t, err == nil && answer.StatusCode == http.StatusOK, "%s answers %d, %v", url, answer.StatusCode, err)
}
