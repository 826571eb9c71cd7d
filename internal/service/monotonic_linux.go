package service

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the clock that never jumps, which systemd uses to order messages; 0 when it cannot be read.
func monotonic() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
