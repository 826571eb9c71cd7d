package systemd

import "testing"

// TestMirror: the suite's own main component, not its updates.
func TestMirror(t *testing.T) {
	const targets = "bookworm-updates main http://a/debian/\nbookworm contrib http://b/debian/\nbookworm main http://c/debian/\n"
	if mirror, ok := mirrorIn(targets); !ok || mirror != "http://c/debian/" {
		t.Errorf("mirror is %q, %t", mirror, ok)
	}
	if mirror, ok := mirrorIn("trixie main http://a/debian/\n"); ok {
		t.Errorf("a mirror of another release is taken: %q", mirror)
	}
}

// TestParent: a process may be called anything.
func TestParent(t *testing.T) {
	for stat, want := range map[string]int{
		"12 (systemd) S 7 12 12 0": 7, "12 (a) S 9) R 8 1 1": 8, "12 (x)": 0, "": 0,
	} {
		if got := parentIn(stat); got != want {
			t.Errorf("parent in %q is %d, want %d", stat, got, want)
		}
	}
}
