//go:build unix

package chaos

import (
	"testing"
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
