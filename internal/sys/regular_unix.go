//go:build unix

package sys

import "golang.org/x/sys/unix"

// noWait opens a pipe without its other end, and a terminal without taking it.
const noWait = unix.O_NONBLOCK | unix.O_NOCTTY
