//go:build unix && !linux

package chaos

// mount is what other systems have not.
type mount struct{}

func servesFaults() bool { return false }
