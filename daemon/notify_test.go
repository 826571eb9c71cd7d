package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// listenManager is a service manager that listens; messages are what it is told.
func listenManager(t *testing.T, name string) (messages chan string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no datagrams on Unix sockets here")
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	messages = make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			messages <- string(buf[:n])
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-ended
	})
	return messages
}

// next is the next message with a word in it.
func next(t *testing.T, messages chan string, word string) string {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case m := <-messages:
			if strings.Contains(m, word) {
				return m
			}
		case <-limit:
			t.Fatalf("never told %s", word)
		}
	}
}

// A real daemon tells a real socket that it is ready, that it lives, what it does, and that it stops.
func TestNotify(t *testing.T) {
	names := []string{filepath.Join(t.TempDir(), "n")}
	if runtime.GOOS == "linux" {
		names = append(names, "@ccship-test-"+strconv.Itoa(os.Getpid()))
	}
	for _, name := range names {
		messages := listenManager(t, name)
		t.Setenv("NOTIFY_SOCKET", name)
		t.Setenv("WATCHDOG_USEC", "400000")
		t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
		w := newWorld(t)
		w.write("p/11111111-1111-4111-8111-111111111111.jsonl", `{"cwd":"/x"}`+"\n")
		w.start()
		const end = "STATUS=watching; 1 transcripts, 0 entries waiting"
		first := <-messages
		if !strings.HasPrefix(first, "READY=1\nSTATUS=") {
			t.Errorf("first told %q", first)
		}
		if !strings.Contains(first, end) {
			if m := next(t, messages, end); !strings.HasPrefix(m, "WATCHDOG=1\n") {
				t.Errorf("told %q", m)
			}
		}
		next(t, messages, "WATCHDOG=1")
		_, _ = w.client.Reload(t.Context()) // told whatever it finds
		if m := next(t, messages, "RELOADING=1"); !strings.HasPrefix(m, "RELOADING=1\nMONOTONIC_USEC=") {
			t.Errorf("told %q", m)
		}
		next(t, messages, "READY=1")
		w.stop()
		next(t, messages, "STOPPING=1")
	}
}

// A daemon whose manager has gone runs on.
func TestNotifyNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	w := newWorld(t)
	w.start()
	w.write("p/11111111-1111-4111-8111-111111111111.jsonl", `{"cwd":"/x"}`+"\n")
	if r := w.sync(); !r.Done {
		t.Errorf("%+v", r)
	}
}

func TestServiceManager(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		env  map[string]string
		want manager
	}{
		{nil, manager{}},
		{map[string]string{"WATCHDOG_USEC": "1000000"}, manager{}},
		{map[string]string{"NOTIFY_SOCKET": "/n"}, manager{socket: "/n"}},
		{map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1500000"}, manager{socket: "/n", watchdog: 1500 * time.Millisecond}},
		{map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1500000", "WATCHDOG_PID": pid}, manager{socket: "/n", watchdog: 1500 * time.Millisecond}},
		{map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "1"}, manager{socket: "/n"}},
		{map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "soon"}, manager{socket: "/n"}},
	} {
		got := serviceManager(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if got != c.want {
			t.Errorf("%v: %+v", c.env, got)
		}
	}
}

// There is no beat while one of the parts hangs, and there are beats again once it does not.
func TestVitals(t *testing.T) {
	well := func() *vitals {
		return &vitals{
			control: func(context.Context) (control.Status, error) { return control.Status{State: "watching"}, nil },
			turned:  func() time.Duration { return time.Second },
			state:   func(context.Context) error { return nil },
			limit:   10 * time.Second, busy: make(chan struct{}, 1),
		}
	}
	synctest.Test(t, func(t *testing.T) {
		if s, err := well().check(t.Context()); err != nil || s.State != "watching" {
			t.Errorf("%+v %v", s, err)
		}
		v := well()
		v.turned = func() time.Duration { return 21 * time.Second }
		if _, err := v.check(t.Context()); err == nil || !strings.Contains(err.Error(), "tailer") {
			t.Errorf("a still tailer: %v", err)
		}
		v = well()
		v.control = func(context.Context) (control.Status, error) { return control.Status{}, errors.New("no") }
		if _, err := v.check(t.Context()); err == nil || !strings.Contains(err.Error(), "control socket") {
			t.Errorf("a socket without answer: %v", err)
		}
		v = well()
		hang := make(chan struct{})
		v.state = func(context.Context) error { <-hang; return nil }
		for _, want := range []string{"deadline", "still hangs"} { // the second finds the first still waiting
			if _, err := v.check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a state that hangs: %v, want %s", err, want)
			}
		}
		close(hang)
		synctest.Wait()
		if _, err := v.check(t.Context()); err != nil {
			t.Errorf("a state that goes on: %v", err)
		}
	})
}

// While a part hangs the manager hears nothing; when it goes on, it hears again.
func TestNoBeatWhileHanging(t *testing.T) {
	name := filepath.Join(t.TempDir(), "n")
	messages := listenManager(t, name)
	var looks atomic.Int64
	var hangs atomic.Bool
	hangs.Store(true)
	v := &vitals{
		control: func(context.Context) (control.Status, error) { return control.Status{State: "watching"}, nil },
		turned: func() time.Duration {
			looks.Add(1)
			if hangs.Load() {
				return time.Hour
			}
			return 0
		},
		state: func(context.Context) error { return nil },
		limit: 20 * time.Millisecond, busy: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	d := &Daemon{log: slog.New(slog.DiscardHandler)}
	go func() {
		d.report(ctx, manager{socket: name}, v)
		close(ended)
	}()
	next(t, messages, "READY=1")
	for looks.Load() < 5 {
		runtime.Gosched()
	}
	select {
	case m := <-messages:
		t.Errorf("told %q while the tailer hangs", m)
	default:
	}
	hangs.Store(false)
	next(t, messages, "WATCHDOG=1")
	cancel()
	<-ended
	next(t, messages, "STOPPING=1")
}
