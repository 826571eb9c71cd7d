package transcript

import (
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
)

// TestEscapeName: what servers refuse is escaped so that it can be read back; other names stay.
func TestEscapeName(t *testing.T) {
	for name, want := range map[string]string{
		"0b167cb6-8ac5-4425-8ae4-d39463b3a17c": "0b167cb6-8ac5-4425-8ae4-d39463b3a17c",
		"s/agent-1":                            "s/agent-1", "café ~2": "café ~2", "a\uFFFDb": "a\uFFFDb",
		"odd\x07name": "odd%07name", "100%": "100%25", "%07": "%2507", "\u0085": "%C2%85", "bad\xff": "bad%FF", "\x00": "%00",
	} {
		got := EscapeName(name)
		back, err := url.PathUnescape(got)
		kit.Check(t, got == want && err == nil && back == name, "%q becomes %q, want %q; read back %q, %v", name, got, want, back, err)
	}
}

// TestEscapeLongNames: long names fit, and differ if they differed.
func TestEscapeLongNames(t *testing.T) {
	long := strings.Repeat("\x01", 40<<10)
	a, b := EscapeName(long+"a"), EscapeName(long+"b")
	kit.Check(t, a != b && len(a) <= maxStreamName, "%d bytes, equal: %t", len(a), a == b)
	kit.Check(t, utf8.ValidString(a) && !strings.ContainsFunc(a, unicode.IsControl), "%.80q is refused by servers", a)
}
