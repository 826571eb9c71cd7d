package setup

import (
	"os"
	"syscall"
)

func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// askToEnd ends the process: Windows has no way to ask one without a window.
func askToEnd(p *os.Process) error { return p.Kill() }
