package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
)

// manager is the service manager that waits for word of this process, by sd_notify(3): a datagram a message to the
// socket that it names. The zero manager waits for nothing.
type manager struct {
	socket   string
	watchdog time.Duration // the process is killed when it was silent for so long; 0 never
	lost     bool          // a datagram could not be sent; it is said once
}

// serviceManager finds the manager that started this process, in env.
func serviceManager(env config.Env) manager {
	m := manager{socket: env.Get("NOTIFY_SOCKET")}
	if m.socket == "" {
		return m
	}
	if pid := env.Get("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m // meant for another process
	}
	if us, err := strconv.ParseInt(env.Get("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		m.watchdog = time.Duration(us) * time.Microsecond
	}
	return m
}

// tell sends one message of assignments. Abstract sockets begin with an @, as package net spells them too.
func (m *manager) tell(assignments ...string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell service manager: %w", err)
	}
	_, err = conn.Write([]byte(strings.Join(assignments, "\n")))
	if err := errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("tell service manager: %w", err)
	}
	return nil
}

// beatTime is how often the manager hears of the daemon when it has not said how often it must.
const beatTime = 10 * time.Second

// reportTo keeps the service manager informed until ctx is done: that the daemon is ready once its socket answers, what
// it does, that it lives, and that it stops. A beat proves that tailer, state and control socket answer; where one of
// them hangs, there is none, and the manager kills the process and starts another.
func (d *Daemon) reportTo(ctx context.Context, m manager) error {
	if m.socket == "" {
		return nil
	}
	every := beatTime
	if m.watchdog > 0 {
		every = m.watchdog / 4
	}
	v := vitals{
		control: control.Dial(d.cfg.Socket).Status, turned: d.tailer.SinceHeartbeat, state: d.db.Alive,
		limit: every, busy: make(chan struct{}, 1),
	}
	d.report(ctx, m, &v)
	return nil
}

func (d *Daemon) report(ctx context.Context, m manager, v *vitals) {
	said := ""
	for {
		s, err := v.control(ctx)
		if err == nil {
			said = sentence(s)
			d.notify(&m, "READY=1", "STATUS="+said)
			break
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	well := true
	for pause(ctx, v.limit) == nil {
		s, err := v.check(ctx)
		if was := well; ctx.Err() == nil && was != (err == nil) {
			well = err == nil
			d.log.Warn("watchdog: alive", "alive", well, "err", err)
		}
		if err != nil {
			continue
		}
		words := []string{"WATCHDOG=1"}
		if now := sentence(s); now != said {
			said, words = now, append(words, "STATUS="+now)
		}
		d.notify(&m, words...)
	}
	d.notify(&m, "STOPPING=1", "STATUS=stopping")
}

// notify tells the manager, and says in the log, once, when that cannot be done.
func (d *Daemon) notify(m *manager, assignments ...string) {
	err := m.tell(assignments...)
	if err != nil && !m.lost {
		d.log.Warn("the service manager cannot be told", "err", err)
	}
	m.lost = err != nil
}

// tellReloading tells the manager that the configuration is being read again, until done is called.
func (d *Daemon) tellReloading() (done func()) {
	m := serviceManager(os.LookupEnv)
	if m.socket == "" {
		return func() {}
	}
	d.notify(&m, "RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic().Microseconds(), 10))
	return func() { d.notify(&m, "READY=1") }
}

// sentence is a status in a line, for `systemctl status`.
func sentence(s control.Status) string {
	text := strings.ReplaceAll(s.State, "_", " ")
	if s.Files != nil && s.Outbox != nil {
		text += fmt.Sprintf("; %d transcripts, %d entries waiting", s.Files.Tracked, s.Outbox.Entries)
	}
	return text
}

// vitals are the signs of life of the daemon's parts.
type vitals struct {
	control func(context.Context) (control.Status, error) // asks over the socket, as everyone does
	turned  func() time.Duration                          // since the tailer's loop came round
	state   func(context.Context) error                   // gets a transaction
	limit   time.Duration                                 // for all of them together, and between two checks
	busy    chan struct{}                                 // holds a token while state is asked
}

// check answers the status once every part has shown that it lives, or which of them has not.
func (v *vitals) check(ctx context.Context) (control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, v.limit)
	defer cancel()
	if still := v.turned(); still > 2*v.limit {
		return control.Status{}, fmt.Errorf("the tailer has been still for %s", still.Round(time.Second))
	}
	s, err := v.control(ctx)
	if err != nil {
		return s, fmt.Errorf("the control socket does not answer: %w", err)
	}
	select {
	case v.busy <- struct{}{}:
	default:
		return s, errors.New("the state still hangs")
	}
	answer := make(chan error, 1)
	go func() { // who leads a group of transactions cannot leave: it may outlive this check
		answer <- v.state(ctx)
		<-v.busy
	}()
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return s, fmt.Errorf("the state does not answer: %w", err)
	}
	return s, nil
}
