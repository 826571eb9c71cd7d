package gauge_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/gauge"
)

// TestTreeNeverFalls: while children start and end, what all have used only grows.
func TestTreeNeverFalls(t *testing.T) {
	cmd := exec.Command("sh", "-c", `n=0; while [ $n -lt 40 ]; do n=$((n+1)); (i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done) & wait; done`)
	kit.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var last gauge.Use
	for readings := 0; ; readings++ {
		now, err := gauge.Tree(cmd.Process.Pid)
		if err != nil { // it is gone
			t.Logf("%d readings, %s", readings, last.CPU)
			break
		}
		const rounding = 20 * time.Millisecond // of the time of children that have ended
		kit.Check(t, now.CPU >= last.CPU-rounding, "reading %d: %s after %s", readings, now.CPU, last.CPU)
		last = now
	}
	kit.Must(t, <-ended)
}
