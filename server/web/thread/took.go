package thread

import (
	"cmp"
	"time"

	"github.com/ccship/ccship/transcript"
)

// noticed is how long a call may take before its time may contain waiting for permission. Those that take longer have
// moments, which know of the whole turn.
const noticed = 10 * time.Second

// Times is how long a call took, as the timeline of the whole transcript knows it.
type Times struct {
	Tool         string
	Took, Waited time.Duration // without waiting for the user, and the waiting
	MayWait      bool          // Took may contain such waiting
}

// took sets how long a call ran without waiting for the user: by what its result says itself, by what the timeline
// knows, else from call to result. MayWait says that this may contain such waiting: the records do not tell it apart.
func (b *Builder) took(t *Tool, elapsed time.Duration, o outcome) {
	stated := time.Duration(o.Millis) * time.Millisecond
	for _, own := range []float64{o.OwnMillis, 1000 * o.OwnSeconds} {
		if stated == 0 && own > 0 && own < 1e10 {
			stated = time.Duration(own * float64(time.Millisecond))
		}
	}
	switch {
	case t.call.Name == "AskUserQuestion" || t.call.Name == "ExitPlanMode":
		t.Waited = min(elapsed, 7*24*time.Hour) // all of it is waiting
	case stated > 0 && (elapsed == 0 || stated <= elapsed || o.Millis > 0):
		t.Took = stated
	case elapsed > 7*24*time.Hour:
	default:
		for _, x := range b.Times[t.ResultLine] {
			if x.Tool == t.call.Name && (x.Took+x.Waited-elapsed).Abs() < time.Millisecond {
				t.Took, t.Waited, t.MayWait = x.Took, x.Waited, x.MayWait && b.mayAsk(t)
				return
			}
		}
		t.Took, t.MayWait = elapsed, elapsed >= noticed && b.mayAsk(t)
	}
}

// mayAsk reports whether Claude Code may have asked the user before a call.
func (b *Builder) mayAsk(t *Tool) bool {
	in := t.call.input()
	path := cmp.Or(in.FilePath, in.NotebookPath, transcript.StringField(t.call.Input, "path"))
	return transcript.MayAsk(b.permission, t.call.Name, path, t.call.Cwd)
}
