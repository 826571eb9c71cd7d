package document

import (
	"os"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/projection"
)

// TestCheck checks a document while an editor, a formatter and a clock do what they do between two checks.
func TestCheck(t *testing.T) {
	h := newHarness(t)
	path := h.saveLinked("a.md", "one")
	version := func(what string, p trackedDocument, want int64, rows int64) {
		t.Helper()
		if p.Version != want || h.rows() != rows {
			t.Errorf("%s: version %d and %d rows, want %d and %d", what, p.Version, h.rows(), want, rows)
		}
	}
	version("as it is", h.check("a.md"), 1, 1)
	saveFile(t, h.cwd, "a.md", "two")
	version("it may still be written", h.check("a.md"), 1, 1)
	saveFile(t, h.cwd, "a.md", "three")
	version("it is still written", h.check("a.md"), 1, 1)
	version("it rests", h.check("a.md"), 2, 2)
	kit.Must(t, os.Remove(path))
	kit.Check(t, !h.check("a.md").Deleted, "a file that is missing at one check is deleted")
	saveFile(t, h.cwd, "a.md", "three")
	h.check("a.md")
	version("another file with the same content", h.check("a.md"), 2, 2)
	kit.Must(t, os.Remove(path))
	h.check("a.md")
	p := h.check("a.md")
	kit.Check(t, p.Deleted && p.SHA256 == "" && p.Size == 0, "deleted: %+v", p)
	version("deleted once", h.check("a.md"), 3, 3)
	saveFile(t, h.cwd, "a.md", "three")
	h.check("a.md")
	version("there again, the same", h.check("a.md"), 4, 4)
	saveFile(t, h.cwd, "a.md", "by Claude")
	p = h.check("a.md", edit{path, 7})
	kit.Check(t, p.By == byClaude && p.Version == 5, "an edit of Claude's: %+v", p)
	version("nothing more", h.check("a.md", edit{path, 7}), 5, 5)
}

// TestCheckUnderOneStamp finds a change that leaves the directory entry as it was, as a clock with long ticks does.
func TestCheckUnderOneStamp(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.md", "one")
	p := h.check("a.md")
	kit.Require(t, p.unproven, "a file written just now is not doubted")
	path := saveFile(t, h.cwd, "a.md", "two")
	old := time.Now().Add(-time.Hour)
	kit.Must(t, os.Chtimes(path, old, old))
	h.check("a.md")
	p = h.check("a.md")
	kit.Require(t, p.Version == 2, "version %d", p.Version)
	p.SHA256 = "what was there within the same tick"
	p.unproven = true
	h.put(p, false)
	h.until("the clock has ticked", func() bool { return h.check("a.md").Version == 3 })
	p = h.check("a.md")
	kit.Check(t, !p.unproven && p.Version == 3, "it is doubted for ever: %+v", p)
	p.SHA256 = "what cannot be known any more"
	h.put(p, false)
	p = h.check("a.md")
	kit.Check(t, p.Version == 3, "a file whose entry proves that it is the same is read")
}

// TestCheckWhileWritten takes a file that is written all the time as it is once in a while.
func TestCheckWhileWritten(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.log", "")
	text := ""
	for range 5 {
		text += "line\n"
		saveFile(t, h.cwd, "a.log", text)
		p := h.check("a.log")
		kit.Require(t, p.Version == 1 && !p.changingSince.IsZero(), "it is read while it is written: %+v", p)
	}
	p := h.check("a.log")
	kit.Require(t, p.Version == 2, "version %d, want 2", p.Version)
	saveFile(t, h.cwd, "a.log", "x")
	p = h.check("a.log")
	p.changingSince = time.Now().Add(-maxChanging)
	h.put(p, false)
	saveFile(t, h.cwd, "a.log", "xy")
	p = h.check("a.log")
	kit.Check(t, p.Version == 3, "version %d, want 3", p.Version)
}

// TestLinkOtherCase takes one file by two spellings, where the file system does, as one document.
func TestLinkOtherCase(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("docs/Spec.md", "x")
	if _, err := os.Stat(h.cwd + "/DOCS/spec.MD"); err != nil {
		t.Skip("names differ by case here")
	}
	h.linkNow("DOCS/spec.MD")
	kit.Equal(t, "documents", len(h.list(sessionA, true)), 1)
}

// TestMostLinked refuses more documents than a session can have.
func TestMostLinked(t *testing.T) {
	h := newHarness(t)
	for n := range maxLinked {
		p := trackedDocument{}
		p.Session, p.Path, p.Linked = sessionA, string(rune('a'+n)), true
		h.put(p, true)
	}
	saveFile(t, h.cwd, "one-more.md", "x")
	err := h.link(t.Context(), linkRequest{session: sessionA, path: "one-more.md", by: byUser, line: -1})
	kit.Check(t, err != nil, "it is linked")
}

// TestNothingLinked has no reason to wake up when nothing is linked.
func TestNothingLinked(t *testing.T) {
	h := newHarness(t)
	_, any := h.untilDue(time.Now())
	kit.Check(t, !any, "something is checked though nothing was ever linked")
	h.saveLinked("a.md", "x")
	_, any = h.untilDue(time.Now())
	kit.Check(t, any, "what is linked is not checked")
	kit.Must(t, h.unlink(t.Context(), linkRequest{session: sessionA, path: "a.md", by: byUser, line: -1}))
	_, any = h.untilDue(time.Now())
	kit.Check(t, !any, "what is no longer linked is checked")
}

// TestForgetsAtOnce has nothing of a session's documents left, in memory and on disk.
func TestForgetsAtOnce(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.md", "x")
	kit.Must(t, h.Forget(t.Context(), sessionA))
	kit.Check(t, len(h.list(sessionA, false)) == 0, "documents are left")
	if h.reload(); len(h.sessions) > 0 {
		t.Errorf("%d sessions are left on disk", len(h.sessions))
	}
}

// TestNotSent queues a version that could not be sent again at the next check, and reports the problem until then.
func TestNotSent(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.md", "one")
	stale := h.check("a.md")
	said := func() string {
		d, err := h.List(t.Context(), sessionA)
		kit.Require(t, err == nil && len(d.Documents) == 1, "%v %v", d, err)
		return d.Documents[0].Problem
	}
	kit.Equal(t, "nothing is wrong", said(), "")
	h.NotSent(projection.MissedDocument{Session: sessionA, Path: "a.md", SHA256: stale.SHA256})
	h.put(stale, false) // by a check that began before
	kit.Equal(t, "problem", said(), notSentProblem)
	if p := h.check("a.md"); p.Dest == "" || p.Version != 1 || h.rows() != 2 || said() != "" {
		t.Errorf("checked again: %+v, %d rows, %q", p, h.rows(), said())
	}
	h.NotSent(projection.MissedDocument{Session: "another", Path: "a.md"})
	h.NotSent(projection.MissedDocument{Session: sessionA, Path: "never.md"})
	kit.Equal(t, "documents", len(h.list(sessionA, false)), 1)
}
