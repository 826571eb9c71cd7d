package derive

import (
	"testing"

	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// TestCleanLines knows where a masker found nothing, and nothing more.
func TestCleanLines(t *testing.T) {
	t.Parallel()
	masker := kit.Try(redact.New(redact.Key{1})).Must(t)
	other := kit.Try(redact.New(redact.Key{1})).Must(t)
	var x cleanLines
	note := func(id tail.FileID, generation uint32, from, to int64, by *redact.Masker) {
		x.note(&tail.Chunk{File: tail.File{ID: id}, From: tail.Cursor{Generation: generation, Offset: from},
			To: tail.Cursor{Generation: generation, Offset: to}}, &route.Decision{CleanBy: by})
	}
	is := func(what string, want bool, id tail.FileID, generation uint32, offset int64, by *redact.Masker) {
		t.Helper()
		c := x.of(id)
		kit.Check(t, c.holds(by, generation, offset) == want, "%s: clean %v, want %v", what, !want, want)
	}
	is("nothing known", false, 1, 0, 0, masker)
	note(1, 0, 0, 100, masker)
	note(1, 0, 100, 200, masker)
	is("two chunks", true, 1, 0, 0, masker)
	is("the second", true, 1, 0, 199, masker)
	is("behind", false, 1, 0, 200, masker)
	is("another generation", false, 1, 1, 10, masker)
	is("other rules", false, 1, 0, 10, other)
	is("another file", false, 2, 0, 10, masker)
	note(1, 0, 300, 400, masker)
	is("before a gap", false, 1, 0, 10, masker)
	is("behind a gap", true, 1, 0, 300, masker)
	note(1, 0, 400, 500, nil)
	is("a chunk with secrets", false, 1, 0, 300, masker)
	for id := range tail.FileID(maxClean + 2) {
		note(id+10, 0, 0, 1, masker)
	}
	kit.Check(t, len(x.ranges) <= maxClean, "%d transcripts are remembered", len(x.ranges))
}
