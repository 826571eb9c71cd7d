package show

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// What a person reads of a verify: what was not compared is counted, what is held back is named.
func TestReportText(t *testing.T) {
	held := showtest.EqualReport()
	held.ExcludedFiles = 1
	held.Transcripts = append(held.Transcripts, showtest.VerifyReport().Transcripts[3])
	for name, r := range map[string]control.VerifyReport{"unequal": showtest.VerifyReport(), "equal": showtest.EqualReport(), "held": held} {
		showtest.Golden(t, "verify_"+name+".txt", Verify(r))
	}
}

// Neither a status nor a report says that all is well next to files that nobody reads.
func TestNotRead(t *testing.T) {
	n := showtest.NotRead()
	text := Verify(control.VerifyReport{Equal: true, Proven: true, Files: 2, Unfinished: 2, NotReadFiles: n})
	for _, want := range []string{
		"equal, all but the unfinished last line of 2 files: 2 transcripts", "not read: " + n.Stray[0],
		"not read: " + n.NotFollowed[0], "not read: 3 sessions in " + n.Elsewhere[0].Path,
	} {
		kit.Check(t, strings.Contains(text, want), "%q is not in\n%s", want, text)
	}
	for _, n := range []control.NotReadFiles{{Stray: n.Stray}, {NotFollowed: n.NotFollowed}, {Elsewhere: n.Elsewhere}} {
		s := control.Status{State: "watching", Files: &control.Files{Tracked: 1}, Watch: &control.Watch{NotReadFiles: n}}
		_, _, words := watching(s)
		kit.Check(t, !strings.Contains(words, "everything is"), "%+v: %s", n, words)
	}
}
