package derive

import (
	"testing"

	"github.com/ccship/ccship/transcript"
)

func TestOrigin(t *testing.T) {
	record := func(session, id string) *transcript.Record { return &transcript.Record{SessionID: session, UUID: id} }
	title := &transcript.Record{SessionID: "other"} // no record of the conversation
	for name, c := range map[string]struct {
		stream  string
		records []*transcript.Record
		want    origin
	}{
		"a session":      {"x", []*transcript.Record{title, record("x", "1"), record("x", "2")}, origin{"x/1", false}},
		"its copy":       {"x~2", []*transcript.Record{record("x", "1"), record("x", "2")}, origin{"x/1", true}},
		"a fork":         {"y", []*transcript.Record{record("y", "1")}, origin{"y/1", false}},
		"a continuation": {"y", []*transcript.Record{record("x", "1"), record("y", "2"), record("x", "3")}, origin{"y/1", false}},
		"nothing known":  {"y", []*transcript.Record{title}, origin{}},
	} {
		var o origin
		for _, r := range c.records {
			o.add(c.stream, r)
		}
		if o != c.want {
			t.Errorf("%s: %+v, want %+v", name, o, c.want)
		}
	}
}
