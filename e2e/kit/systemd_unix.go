//go:build unix

package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ownSession keeps a service apart from the terminal of its caller, as a real manager does. Package testscript
// hands that terminal down as file 3.
func ownSession() *syscall.SysProcAttr {
	syscall.CloseOnExec(3)
	return &syscall.SysProcAttr{Setsid: true}
}

// LockPorts returns once no other test on this machine, of whatever process, has a server installed: each of them takes
// the first free port from 5000 on, and leaves it free while it does not run. The caller ends with release.
func LockPorts() (release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "ccship-test-ports"), os.O_RDONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("wait for other tests: %w", err)
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for other tests: %w", err), f.Close())
	}
	return f.Close, nil
}
