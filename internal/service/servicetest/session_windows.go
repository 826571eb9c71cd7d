package servicetest

import "syscall"

// ownSession changes nothing: there are no sessions here.
func ownSession() *syscall.SysProcAttr { return nil }

// Alone does not wait: no server is installed in tests here.
func Alone() (release func() error, err error) { return func() error { return nil }, nil }
