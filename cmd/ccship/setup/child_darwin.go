package setup

import (
	"os"
	"syscall"
)

func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func askToEnd(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
