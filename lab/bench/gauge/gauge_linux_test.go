package gauge_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/lab/bench/gauge"
)

// TestStoredIsWhatWasHandedOver: small writes that are flushed one by one count once, also where the kernel counts more.
func TestStoredIsWhatWasHandedOver(t *testing.T) {
	const whole, piece, pieces = 4 << 20, 8 << 10, 100
	before, err := gauge.Tree(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.Write(make([]byte, whole))
	for i := int64(0); i < pieces && err == nil; i++ {
		if _, err = f.WriteAt(make([]byte, piece), i*piece); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	after, err := gauge.Tree(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	used := after.Sub(before)
	if used.Written < whole {
		t.Skipf("%d bytes counted as written: this folder is on no disk", used.Written)
	}
	const most = (whole + pieces*piece) * 5 / 4 // what the test program writes besides
	if used.Stored < whole || used.Stored > most {
		t.Errorf("%d bytes stored of %d that were written; the kernel counts %d", used.Stored, whole+pieces*piece, used.Written)
	}
	t.Logf("%d bytes handed over, the kernel counts %d", used.Stored, used.Written)
}

// TestTreeNeverFalls: while children start and end, what all have used only grows.
func TestTreeNeverFalls(t *testing.T) {
	cmd := exec.Command("sh", "-c", `n=0; while [ $n -lt 40 ]; do n=$((n+1)); (i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done) & wait; done`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
		if now.CPU < last.CPU-rounding {
			t.Errorf("reading %d: %s after %s", readings, now.CPU, last.CPU)
		}
		last = now
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
