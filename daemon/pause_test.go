package daemon

import (
	"context"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/e2e/kit"
)

func (w *world) pause(length string) control.PauseState {
	w.t.Helper()
	return kit.Try(w.client.Pause(w.t.Context(), control.PauseRequest{For: length})).Must(w.t)
}

// TestPause reads on and sends nothing, over a restart, until it is ended.
func TestPause(t *testing.T) {
	w := newWorld(t)
	path := "-p/" + sessionA + ".jsonl"
	w.startWith(path, records("/home/kim/shop", 0, 5))
	s := w.pause("")
	kit.Check(t, s.Paused && !s.Was && s.Pause != nil && s.Pause.Until == nil, "pause: %+v", s)
	w.write(path, records("/home/kim/shop", 5, 9))
	w.until("the lines are in the outbox", func() bool { return w.status().Outbox.Entries == 4 })
	w.restart()
	w.write(path, records("/home/kim/shop", 9, 10))
	w.until("reading goes on after a restart", func() bool { return w.status().Outbox.Entries == 5 })
	f, err := w.client.Flush(t.Context())
	kit.Check(t, err == nil && f.Paused && f.Waiting == 5, "flush: %+v %v", f, err)
	paused := w.status()
	kit.Check(t, paused.State == "paused" && paused.Pause != nil && paused.Sent.Entries == 0, "status %s %+v, %d sent", paused.State, paused.Pause, paused.Sent.Entries)
	kit.Equal(t, "what the server got meanwhile", w.server.newest(sessionA), records("/home/kim/shop", 0, 5))
	s, err = w.client.Resume(t.Context())
	kit.Check(t, err == nil && !s.Paused && s.Was, "resume: %+v %v", s, err)
	w.until("the lines arrive", func() bool { return w.server.newest(sessionA) == records("/home/kim/shop", 0, 10) })
	s, err = w.client.Resume(t.Context())
	kit.Check(t, err == nil && !s.Was, "a second resume: %+v %v", s, err)
	w.restart()
	paused = w.status()
	kit.Check(t, paused.Pause == nil, "the pause is back after a restart: %+v", paused.Pause)
}

// TestPauseEnds by itself when its time is up, also while the daemon was not running.
func TestPauseEnds(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pause("1h")
	s := w.pause("1ms")
	kit.Check(t, s.Was && s.Pause.Until != nil && s.Pause.Until.Sub(s.Pause.Since) == time.Millisecond, "a second pause: %+v", s)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.until("the pause is over", func() bool { return w.status().Pause == nil })
	w.until("the lines arrive", func() bool { return w.server.newest(sessionA) == records("/home/kim/shop", 0, 5) })
	w.pause("1ms")
	w.restart()
	w.until("the pause is over", func() bool { return w.status().Pause == nil })
}

// TestSyncEndsPause ends the user's own pause too and says so; one that begins while it waits ends the waiting.
func TestSyncEndsPause(t *testing.T) {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.start()
	w.pause("1h")
	r := w.sync()
	kit.Check(t, r.Done && r.Resumed && r.Acknowledged == 5, "sync: %+v", r)
	w.pause("1h")
	v := w.verify()
	kit.Check(t, v.Equal && v.Resumed, "verify: %+v", v)
	w.server.with(func() { w.server.busy = true })
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 5, 6))
	answer := make(chan control.SyncResult, 1)
	go func() {
		r, err := w.client.Sync(context.Background(), control.SyncRequest{Wait: true, Timeout: "1m"})
		kit.Check(t, err == nil, "%v", err)
		answer <- r
	}()
	w.until("the sync waits for the server", func() bool { return w.status().Outbox.Entries == 1 })
	for { // until it is the waiting that the pause meets, not the beginning of the sync, which ends it
		w.pause("1h")
		select {
		case r := <-answer:
			kit.Check(t, !r.Done && r.Reason == proof.ReasonPaused && (!r.Resumed || r.Waiting == 1), "sync: %+v", r)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestPauseRefuses(t *testing.T) {
	w := newWorld(t)
	w.start()
	for _, length := range []string{"soon", "-1h", "0s", "1000000h"} {
		_, err := w.client.Pause(t.Context(), control.PauseRequest{For: length})
		var known *control.Error
		kit.Check(t, asControlError(err, &known) && known.Code == control.CodeUsage && known.Hint != "",
			"pause for %s: %v", length, err)
	}
	s := w.status()
	kit.Check(t, s.Pause == nil, "paused: %+v", s.Pause)
}
