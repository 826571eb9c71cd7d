package derive

import (
	"fmt"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
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
		kit.Equal(t, name, o, c.want)
	}
}

// TestPause: the first line after some quiet is derived at once; without a pause between lines there are at most five
// rounds a second, and cheap ones take a small share of the time.
func TestPause(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct{ took, since, want time.Duration }{
		{0, time.Hour, gatherLeast},
		{100 * ms, time.Hour, gatherLeast},
		{time.Second, 0, gather},
		{time.Second, 150 * ms, gather - 150*ms},
		{4 * ms, 0, 60 * ms},
		{4 * ms, 55 * ms, gatherLeast},
	} {
		kit.Equal(t, fmt.Sprintf("a round of %v that ended %v ago", tt.took, tt.since), pause(tt.took, tt.since), tt.want)
	}
}
