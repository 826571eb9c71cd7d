package daemon

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/internal/sys"
)

const (
	takeOverEvery = time.Second     // how often a waiting service tries to take over
	lookTime      = 2 * time.Second // how long a process that only reads the holder may have the lock
	lookEvery     = 50 * time.Millisecond
)

// heldError is ErrAlreadyRunning, and describes the daemon that runs.
type heldError struct{ *sys.HeldError }

func (heldError) Is(target error) bool { return target == ErrAlreadyRunning }

func (e heldError) Unwrap() error { return e.HeldError }

// aloneOn makes this the only daemon that delivers the roots, even if another one uses another state folder. In the
// foreground it returns an error that is ErrAlreadyRunning when there is another one. A service waits until that one
// ends; it gets nil if ctx is done first. Where locks do not work, the daemon runs without one: the server's ledger
// detects a second daemon as well.
func aloneOn(ctx context.Context, cfg config.Config) (*sys.Lock, error) {
	log := cfg.Logger()
	manager := service.NewNotifier(os.Getenv, log)
	began, waits := time.Now(), false
	for {
		me := sys.Holder{PID: os.Getpid(), State: cfg.StateDir, Socket: cfg.Socket, Since: time.Now()}
		lock, err := sys.AcquireLock(cfg.Roots, me)
		if err == nil {
			return lock, nil
		}
		var held *sys.HeldError
		if !errors.As(err, &held) {
			log.Warn("cannot make sure that no other ccship delivers the same folders", "err", err)
			return &sys.Lock{}, nil
		}
		pause := takeOverEvery
		switch reading := held.Holder.PID == 0 && time.Since(began) < lookTime; {
		case reading:
			pause = lookEvery
		case !cfg.Managed:
			return nil, heldError{held}
		default:
			if !waits {
				log.Warn("waiting: " + held.Error())
			}
			waits = true
			manager.Waiting("waiting: " + held.Error())
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(pause):
		}
	}
}
