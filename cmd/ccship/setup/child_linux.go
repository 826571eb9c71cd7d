package setup

import (
	"os"
	"os/exec"
	"syscall"
)

// tie makes a child that has not been started end with this process, even after kill -9, and keeps the terminal's
// Ctrl-C from it: the daemon is to stop first. done is called when the child has ended.
func tie(cmd *exec.Cmd) (done func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return askToEnd(cmd.Process) }
	return func() {}, nil
}

func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func askToEnd(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
