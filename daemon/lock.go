package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrAlreadyRunning is returned by Run when another daemon holds the same state.
var ErrAlreadyRunning = errors.New("another ccship is running on the same state")

// lock makes this process the only daemon of a state folder for as long as it lives: the system drops the lock when
// the process ends, however it ends, so there is no stale pid to clean up.
func lock(stateDir string) (*os.File, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, &ConfigError{Message: fmt.Sprintf("make state folder: %v", err), Hint: "name a folder that can be made with state_dir or CCSHIP_STATE_DIR"}
	}
	f, err := os.OpenFile(filepath.Join(stateDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, &ConfigError{Message: fmt.Sprintf("open lock: %v", err), Hint: "the state folder must belong to this user; state_dir names another one"}
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
