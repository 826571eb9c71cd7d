package pgtest

import "syscall"

// dieWithParent makes a cluster end when the tests are killed.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
