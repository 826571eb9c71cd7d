//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent needs a system that tells a process of its parent's end.
func dieWithParent(*syscall.SysProcAttr) {}
