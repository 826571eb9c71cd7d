package outbox

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestMessage(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"error":{"code":"x","message":"two\nlines"}}`, "two lines"},
		{`{"error":"plain words"}`, "plain words"},
		{`{"message":"outer"}`, "outer"},
		{`{"error":{"code":"x"},"message":"outer"}`, "outer"},
		{`{"error":7}`, ""}, {`<html>`, ""}, {``, ""}, {`[1]`, ""},
		{`{"message":"` + strings.Repeat("ö", 500) + `"}`, strings.Repeat("ö", 100) + "…"},
	}
	for _, test := range tests {
		kit.Equal(t, fmt.Sprintf("%.40s", test.text), problemMessage([]byte(test.text)), test.want)
	}
}

// TestLongRedirect keeps what a server says short: the log gets it with each refusal.
func TestLongRedirect(t *testing.T) {
	answer := &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"/" + strings.Repeat("\x1b", 1<<20)}}}
	r := interpret(answer, nil, 1, false)
	kit.Check(t, len(r.summary) < 5*shown && !strings.Contains(r.summary, "\x1b"), "%d bytes: %.100q", len(r.summary), r.summary)
}
