package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/tail"
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

// lookElsewhere looks for conversations that are below none of the roots.
func (d *Daemon) lookElsewhere() {
	conf := d.conf.Load()
	homes := []control.Home{}
	for _, h := range conf.Elsewhere(conf.Roots) {
		homes = append(homes, control.Home(h))
	}
	d.elsewhere.Store(&homes)
}

// notRead names what may be conversations and is not read.
func (d *Daemon) notRead(stats tail.Stats) control.NotReadFiles {
	n := control.NotReadFiles{Stray: stats.Stray, NotFollowed: stats.NotFollowed}
	if homes := d.elsewhere.Load(); homes != nil {
		n.Elsewhere = *homes
	}
	return n
}

// notReadAdvice says what may be conversations and is not read, and how it is.
func notReadAdvice(w *control.Watch) (out []control.Advice) {
	if n := len(w.Stray); n > 0 {
		text := "not delivered: " + w.Stray[0]
		if n > 1 {
			text += fmt.Sprintf(" (and %d more files)", n-1)
		}
		out = append(out, control.Advice{Kind: "stray", Text: text + ": not named like a session, and in no project folder",
			Hint: "move it into a folder directly below the projects folder to have it delivered, or rename it"})
	}
	for _, h := range w.Elsewhere {
		out = append(out, control.Advice{Kind: "elsewhere",
			Text: fmt.Sprintf("not delivered: %s, which is not among the roots, has %d", h.Path, h.Transcripts) +
				map[bool]string{true: " session", false: " sessions"}[h.Transcripts == 1],
			Hint: "`ccship config roots " + strings.Join(append(w.Roots[:len(w.Roots):len(w.Roots)], h.Path), " ") +
				"` has them delivered"})
	}
	return out
}
