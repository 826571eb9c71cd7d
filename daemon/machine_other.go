//go:build !linux && !windows

package daemon

// systemMachineID is empty: reading the platform's UUID takes a subprocess on macOS, so a kept random id serves.
func systemMachineID() string { return "" }
