package wire

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/transcript"
)

// TestNamesAreShort: a name of a stream, which is kept and indexed for every stream, has 1 KiB at most, and what clients
// make of the longest names of files is accepted.
func TestNamesAreShort(t *testing.T) {
	name := strings.Repeat("n", 1<<10)
	if err := CheckName(name, "session_id"); err != nil {
		t.Error(err)
	}
	if err := CheckName(name+"n", "session_id"); err == nil {
		t.Error("a name of more than 1 KiB is accepted")
	}
	for _, char := range []string{"x", "\x01", "é", "\xff"} {
		long := strings.Repeat(char, 1000)
		parent := transcript.StreamName(long, "", 999_999)
		for _, got := range []string{parent, transcript.StreamName("agent-"+long, parent, 999_999), transcript.StreamName(long+"/agent-"+long, "", 2)} {
			if err := CheckName(got, "session_id"); err != nil {
				t.Errorf("%q: %d bytes: %v", char, len(got), err)
			}
		}
	}
	var x extension
	x.Version, x.Machine, x.Epoch, x.Cwd = 1, "m", "e", "/"+strings.Repeat("d/", 4<<10)
	if err := x.check(); err != nil {
		t.Errorf("a deep folder: %v", err)
	}
	x.Machine = name + "n"
	if err := x.check(); err == nil {
		t.Error("a machine of more than 1 KiB is accepted")
	}
}
