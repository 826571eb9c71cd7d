//go:build unix

package chaos

import (
	"os"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestDifferenceSees: what the proof compares with must itself see what is lost and what is wrong.
func TestDifferenceSees(t *testing.T) {
	t.Parallel()
	const disk = "a\nb\nc\nd"
	for got, want := range map[string][2]int{
		disk: {0, 0}, "a\nb\nc\n": {1, 0}, "": {4, 0}, "a\nx\nc\nd": {0, 1}, disk + "\ne\n": {0, 2}, "b\nc\nd": {1, 3},
	} {
		lost, wrong := difference([]byte(got), []byte(disk))
		if lost != want[0] || wrong != want[1] {
			t.Errorf("%q: %d lost, %d wrong, want %v", got, lost, wrong, want)
		}
	}
}

// TestProofSees: a line that the server lacks and a byte that differs are counted.
func TestProofSees(t *testing.T) {
	t.Parallel()
	out := &kit.Outcome{}
	r := newRoom(t, out, 2)
	r.start()
	r.proof()
	r.stop()
	if t.Failed() {
		return
	}
	r.t = &deaf{TB: t}
	c := r.talks[0]
	data, err := os.ReadFile(c.path)
	kit.Must(t, err)
	c.add(r, 1)
	r.compare(c)
	data[3] ^= 1
	kit.Must(t, os.WriteFile(c.path, data, 0o600))
	r.compare(c)
	if out.Lost != 1 || out.Wrong != 1 {
		t.Errorf("%d lost, %d wrong; want 1 and 1", out.Lost, out.Wrong)
	}
}

// deaf keeps failures to itself.
type deaf struct{ testing.TB }

func (d *deaf) Errorf(string, ...any) {}
