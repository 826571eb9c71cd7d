package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// Notifier tells the service manager the state of this process by sd_notify(3): each message is a datagram to the
// socket that the manager names. Without a socket it does nothing. Safe for concurrent use.
type Notifier struct {
	socket   string
	watchdog time.Duration // the manager kills a process that is silent for this long; 0: never
	log      *slog.Logger
	lost     atomic.Bool // the last message could not be sent; logged once
}

// NewNotifier finds the manager that started this process. getenv is os.Getenv.
func NewNotifier(getenv func(string) string, log *slog.Logger) *Notifier {
	n := &Notifier{socket: getenv("NOTIFY_SOCKET"), log: log}
	if n.socket == "" {
		return n
	}
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return n // meant for another process
	}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// Reloading tells the manager that the daemon reads the configuration again, until done is called.
func (n *Notifier) Reloading() (done func()) {
	if n.socket == "" {
		return func() {}
	}
	n.notify("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic().Microseconds(), 10))
	return func() { n.notify("READY=1") }
}

// Waiting tells the manager that the daemon has started and is alive, but waits for another one to end.
func (n *Notifier) Waiting(why string) {
	if n.socket != "" {
		n.notify("READY=1", "WATCHDOG=1", "STATUS="+why)
	}
}

// Starting tells the manager what the start waits for, and to wait for it at least so long from now on.
func (n *Notifier) Starting(why string, long time.Duration) {
	if n.socket != "" {
		n.notify("EXTEND_TIMEOUT_USEC="+strconv.FormatInt(long.Microseconds(), 10), "STATUS="+why)
	}
}

// Ready tells the manager that the start is over, and returns what tells it that the stop begins.
func (n *Notifier) Ready(status string) (stopping func()) {
	if n.socket == "" {
		return func() {}
	}
	n.notify("READY=1", "STATUS="+status)
	return func() { n.notify("STOPPING=1", "STATUS=stopping") }
}

// readyPoll is the time between two checks of the control socket before the daemon is reported ready.
const readyPoll = 20 * time.Millisecond

// Run tells the manager that the daemon is ready once its socket answers, then what it does and that it is alive, and
// when ctx is done that it stops. A message proves that every part works. While a part hangs, Run sends none, and the
// manager kills the process and starts another.
func (n *Notifier) Run(ctx context.Context, parts Parts) {
	if n.socket == "" {
		return
	}
	every := defaultInterval
	if n.watchdog > 0 {
		every = n.watchdog / 4
	}
	n.run(ctx, &watchdog{Parts: parts, limit: every, busy: make(chan struct{}, 1)})
}

// defaultInterval is the time between two messages when the manager does not name a limit.
const defaultInterval = 10 * time.Second

func (n *Notifier) run(ctx context.Context, w *watchdog) {
	defer n.notify("STOPPING=1", "STATUS=stopping")
	s, err := awaitReady(ctx, w.Control)
	if err != nil {
		return
	}
	sent := summary(s)
	n.notify("READY=1", "STATUS="+sent)
	alive := true
	tick := time.NewTicker(w.limit)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s, err = w.check(ctx)
		if was := alive; ctx.Err() == nil && was != (err == nil) {
			alive = err == nil
			n.log.Warn("watchdog: alive", "alive", alive, "err", err)
		}
		if err != nil {
			continue
		}
		message := []string{"WATCHDOG=1"}
		if now := summary(s); now != sent {
			sent, message = now, append(message, "STATUS="+now)
		}
		n.notify(message...)
	}
}

// awaitReady returns the status as soon as the control socket answers.
func awaitReady(ctx context.Context, socket StatusReader) (control.Status, error) {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if s, err := socket.Status(ctx); err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return control.Status{}, ctx.Err()
		case <-tick.C:
		}
	}
}

// notify sends one message, and logs the first of several consecutive failures.
func (n *Notifier) notify(assignments ...string) {
	err := n.send(assignments)
	if lost := n.lost.Swap(err != nil); err != nil && !lost {
		n.log.Warn("cannot notify the service manager", "err", err)
	}
}

// send sends a message. The names of abstract sockets begin with an @, as package net spells them too.
func (n *Notifier) send(assignments []string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(strings.Join(assignments, "\n")))
	return errors.Join(err, conn.Close())
}

// summary returns a status in a line, for `systemctl status`.
func summary(s control.Status) string {
	text := strings.ReplaceAll(s.State, "_", " ")
	if s.Files != nil && s.Outbox != nil {
		text += fmt.Sprintf("; %d transcripts, %d entries waiting", s.Files.Tracked, s.Outbox.Entries)
	}
	return text
}
