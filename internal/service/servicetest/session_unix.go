//go:build unix

package servicetest

import "syscall"

// ownSession keeps a service apart from the terminal of its caller, as a real manager does. Package testscript
// hands that terminal down as file 3.
func ownSession() *syscall.SysProcAttr {
	syscall.CloseOnExec(3)
	return &syscall.SysProcAttr{Setsid: true}
}
