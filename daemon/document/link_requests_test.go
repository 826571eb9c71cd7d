package document

import "testing"

// TestLoopback tells servers on this machine from those that look like it.
func TestLoopback(t *testing.T) {
	for dest, want := range map[string]bool{
		"http://127.0.0.1:5000": true, "http://localhost:5000#/home/kim/shop": true, "http://[::1]:5000/x": true, "http://LOCALHOST.": true,
		"https://ccship.example.org": false, "http://127.0.0.1.example.org": false, "http://localhost.example.org": false,
		"http://user@127.0.0.1@example.org": false, "http://192.168.0.1": false, "": false, "%": false,
	} {
		if got := loopback(dest); got != want {
			t.Errorf("%q is on this machine: %v, want %v", dest, got, want)
		}
	}
}
