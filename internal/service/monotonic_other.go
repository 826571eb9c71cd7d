//go:build !linux

package service

import "time"

// monotonic is only used with systemd.
func monotonic() time.Duration { return 0 }
