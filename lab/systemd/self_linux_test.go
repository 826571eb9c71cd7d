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
