package service

import (
	"context"
	"os"
	"runtime"

	kardianos "github.com/kardianos/service"
)

// Host runs the daemon as the manager that started this process expects, until ctx is done or the manager asks it to
// stop. Only Windows expects anything; elsewhere, and in a terminal, Host only calls run.
func Host(ctx context.Context, run func(context.Context) error) error {
	if runtime.GOOS != "windows" || kardianos.Interactive() {
		return run(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	h := hosted{
		start: func() { // must return at once
			go func() {
				err := run(ctx)
				ended <- err
				if err != nil && ctx.Err() == nil {
					os.Exit(1) // it ended by itself: the manager sees a failure and restarts it
				}
			}()
		},
		stop: func() error { // takes a few seconds at most
			cancel()
			return <-ended
		},
	}
	s, err := kardianos.New(h, &kardianos.Config{Name: Daemon.Name})
	if err != nil {
		return failed("connect to the service manager", err, "run it in a terminal: `ccship run`")
	}
	return s.Run()
}

// hosted is a daemon between Windows' Start and Stop.
type hosted struct {
	start func()
	stop  func() error
}

func (h hosted) Start(kardianos.Service) error { h.start(); return nil }
func (h hosted) Stop(kardianos.Service) error  { return h.stop() }

// Managed reports whether a service manager started this process.
func Managed() bool {
	return os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv("XPC_SERVICE_NAME") == Daemon.label ||
		runtime.GOOS == "windows" && !kardianos.Interactive()
}

// RestartsAnyFailure reports whether the manager that started this process restarts it after every exit code except 0.
// A mistake that a restart cannot fix must then end with 0. launchd does so; the others can be configured.
func RestartsAnyFailure() bool { return os.Getenv("XPC_SERVICE_NAME") == Daemon.label }
