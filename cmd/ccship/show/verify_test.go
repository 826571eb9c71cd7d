package show

import (
	"testing"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
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
