package main

import "syscall"

// ownerOnly lets a socket begin with mode 0600, whatever the umask is.
func ownerOnly(_, _ string, conn syscall.RawConn) error {
	var failed error
	err := conn.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) })
	if err != nil {
		return err
	}
	return failed
}
