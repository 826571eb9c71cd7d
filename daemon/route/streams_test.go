package route

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/tail"
)

// remembered are files that are remembered.
type remembered map[tail.FileID]bool

func (r remembered) File(id tail.FileID) (tail.Tracked, bool) { return tail.Tracked{}, r[id] }

// TestForgottenNameIsFree: a transcript that comes back after it was forgotten has its old name again. While another one
// of the name is remembered, on disk or not, it has not.
func TestForgottenNameIsFree(t *testing.T) {
	files := remembered{1: true, 2: true, 3: true}
	r := &Router{Remembered: files}
	claim := func(id tail.FileID, copies int, want string) {
		t.Helper()
		got := r.claim(tail.File{ID: id, Name: sessionA, Copy: copies}, "")
		kit.Check(t, got == want, "file %d is %s, want %s", id, got, want)
	}
	claim(1, 1, sessionA)
	claim(1, 1, sessionA)
	claim(2, 1, sessionA+"~2")
	delete(files, 1)
	claim(3, 1, sessionA)
	id, ok := r.StreamID(sessionA)
	kit.Check(t, id == 3 && ok, "the stream is file %d's", id)
	claim(2, 1, sessionA+"~2")
	claim(4, 2, sessionA+"~3")
}
