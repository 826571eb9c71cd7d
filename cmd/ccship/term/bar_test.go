package term

import (
	"bytes"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		want        string
	}{
		{0, 0, "0% ░░░░  0 B of 1 B"},
		{1, 2, "50% ██░░  1 B of 2 B"},
		{9_000_000, 9_000_000, "100% ████  9.0 MB of 9.0 MB"},
		{12, 10, "100% ████  12 B of 10 B"},
		{-1, 10, "0% ░░░░  0 B of 10 B"},
	} {
		got := Progress(c.done, c.total, 4)
		kit.Check(t, got == c.want, "%d of %d: %q, want %q", c.done, c.total, got, c.want)
	}
}

func TestRemaining(t *testing.T) {
	for _, c := range []struct{ done, total, want int64 }{{0, 100, 0}, {25, 100, 30}, {100, 100, 0}} {
		got := remaining(10*time.Second, c.done, c.total)
		kit.Check(t, got == time.Duration(c.want)*time.Second, "%d of %d: %s", c.done, c.total, got)
	}
}

// Where nobody watches nothing is drawn.
func TestBarWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	bar := NewBar(&out, "importing")
	bar.Set(1, 2)
	bar.Clear()
	kit.Check(t, bar == nil && out.Len() == 0, "%q", out.String())
}

// What is queued counts as not done, and totals grow: the bar stays where it is until it can go on.
func TestBarForward(t *testing.T) {
	b := &Bar{}
	for _, step := range []struct{ done, total, want int64 }{{0, 0, 0}, {50, 100, 50}, {40, 100, 50}, {60, 200, 100}, {150, 200, 150}, {9, 8, 8}} {
		got := b.forward(step.done, step.total)
		kit.Check(t, got == step.want, "%d of %d is shown as %d, want %d", step.done, step.total, got, step.want)
	}
}
