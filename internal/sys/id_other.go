//go:build !linux && !windows

package sys

// systemID is empty: reading the platform's UUID takes a subprocess on macOS, so a random id that is stored serves.
func systemID() string { return "" }
