package daemon

import (
	"context"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
)

// listener collects events.
type listener struct {
	w    *world
	seen chan control.Event
	end  chan error
	stop context.CancelFunc
}

func (w *world) listen() *listener {
	ctx, cancel := context.WithCancel(context.Background())
	l := &listener{w: w, seen: make(chan control.Event, 1000), end: make(chan error, 1), stop: cancel}
	go func() {
		l.end <- w.client.Events(ctx, func(e control.Event) error {
			l.seen <- e
			return nil
		})
	}()
	w.t.Cleanup(cancel)
	return l
}

// wait passes over events until one is as wanted.
func (l *listener) wait(what string, is func(control.Event) bool) control.Event {
	l.w.t.Helper()
	var got control.Event
	l.w.until("there is an event: "+what, func() bool {
		for {
			select {
			case e := <-l.seen:
				if e.SchemaVersion != 1 || e.At.IsZero() {
					l.w.t.Errorf("event %+v", e)
				}
				if is(e) {
					got = e
					return true
				}
			default:
				return false
			}
		}
	})
	return got
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newFileWorld(t)
	w.start()
	l := w.listen()
	l.wait("the status first", func(e control.Event) bool { return e.Type == control.EventStatus && e.Status.State == "watching" })
	path := "-p/" + sessionA + ".jsonl"
	w.write(path, records("/home/kim/shop", 0, 10))
	e := l.wait("a new transcript", func(e control.Event) bool { return e.Type == control.EventTranscript })
	if tr := e.Transcript; tr.Session != sessionA || tr.Cwd != "/home/kim/shop" || tr.Project != "shop" || !strings.HasSuffix(tr.Path, sessionA+".jsonl") {
		t.Errorf("transcript %+v", tr)
	}
	n := int64(0)
	l.wait("all entries acknowledged", func(e control.Event) bool {
		if e.Type == control.EventAcknowledged {
			n += e.Acknowledged.Entries
		}
		return n == 10
	})
	w.rewrite(path, records("/home/kim/shop", 0, 4))
	e = l.wait("a rewind", func(e control.Event) bool { return e.Type == control.EventRewind })
	if tr := e.Transcript; tr.Session != sessionA || tr.Generation != 1 {
		t.Errorf("rewind %+v", tr)
	}
	w.pause("")
	l.wait("the pause", func(e control.Event) bool {
		return e.Type == control.EventStatus && e.Status.State == "paused" && e.Status.Pause != nil
	})
	w.set("line_cap", `"1MiB"`)
	w.reload()
	l.wait("a notice", func(e control.Event) bool {
		return e.Type == control.EventAdvice && e.Advice.Kind == "restart" && !e.Advice.Gone
	})
	delete(w.lines, "line_cap")
	w.save()
	w.reload()
	l.wait("its end", func(e control.Event) bool {
		return e.Type == control.EventAdvice && e.Advice.Kind == "restart" && e.Advice.Gone
	})
	w.stop()
	if err := <-l.end; err != nil {
		t.Errorf("the stream ended with %v when the daemon stopped", err)
	}
}
