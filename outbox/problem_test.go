package outbox

import (
	"fmt"
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
