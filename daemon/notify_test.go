package daemon

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// A real daemon tells a real socket that it is ready, that it lives, what it does, and that it stops.
func TestNotify(t *testing.T) {
	names := []string{filepath.Join(t.TempDir(), "n")}
	if runtime.GOOS == "linux" {
		names = append(names, "@ccship-test-"+strconv.Itoa(os.Getpid()))
	}
	for _, name := range names {
		messages := kit.ListenManager(t, name)
		t.Setenv("NOTIFY_SOCKET", name)
		t.Setenv("WATCHDOG_USEC", "400000")
		t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
		w := newSerialWorld(t)
		w.write("p/11111111-1111-4111-8111-111111111111.jsonl", `{"cwd":"/x"}`+"\n")
		w.start()
		const end = "STATUS=watching; 1 transcripts, 0 entries waiting"
		first := <-messages
		kit.Check(t, strings.HasPrefix(first, "READY=1\nSTATUS="), "first told %q", first)
		if !strings.Contains(first, end) {
			m := messages.Next(t, end)
			kit.Check(t, strings.HasPrefix(m, "WATCHDOG=1\n"), "told %q", m)
		}
		messages.Next(t, "WATCHDOG=1")
		_, _ = w.client.Reload(t.Context()) // notified whatever it finds
		m := messages.Next(t, "RELOADING=1")
		kit.Check(t, strings.HasPrefix(m, "RELOADING=1\nMONOTONIC_USEC="), "told %q", m)
		messages.Next(t, "READY=1")
		w.stop()
		messages.Next(t, "STOPPING=1")
	}
}

// A daemon whose manager has gone runs on.
func TestNotifyNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	w := newSerialWorld(t)
	w.start()
	w.write("p/11111111-1111-4111-8111-111111111111.jsonl", `{"cwd":"/x"}`+"\n")
	r := w.sync()
	kit.Check(t, r.Done, "%+v", r)
}
