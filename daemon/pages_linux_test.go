package daemon

import (
	"os"
	"strings"
	"testing"
)

// TestGiveBackCode runs on after its own code was given back, and finds that less of it counts as memory.
func TestGiveBackCode(t *testing.T) {
	before := fileRSS(t)
	giveBackCode()
	if after := fileRSS(t); after >= before {
		t.Errorf("%d pages of files in memory, before %d", after, before)
	}
}

// fileRSS is how many pages of mapped files count as this process's memory.
func fileRSS(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, digit := range strings.Fields(string(text))[2] {
		pages = pages*10 + int(digit-'0')
	}
	return pages
}

func TestCodeOf(t *testing.T) {
	const program = "/opt/a b/ccship"
	tests := map[string]bool{
		"00400000-00a00000 r-xp 00001000 fd:01 77 /opt/a b/ccship":           true,
		"00400000-00a00000 r--p 00001000 fd:01 77 /opt/a b/ccship":           false,
		"00a00000-00b00000 rw-p 00001000 fd:01 77 /opt/a b/ccship":           false,
		"00400000-00a00000 r-xp 00001000 fd:01 77 /lib/libc.so.6":            false,
		"7ffd0000-7ffd2000 r-xp 00000000 00:00 0 [vdso]":                     false,
		"00a00000-00400000 r-xp 00001000 fd:01 77 /opt/a b/ccship":           false,
		"00400000-00a00000 r-xp 00001000 fd:01 77 /opt/a b/ccship (deleted)": false,
		"": false,
	}
	for line, want := range tests {
		if _, _, got := codeOf(line, program); got != want {
			t.Errorf("%q: %t, want %t", line, got, want)
		}
	}
}
