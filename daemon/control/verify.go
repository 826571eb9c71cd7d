package control

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// verify streams one JSON document per line: progress, or {} when there has been none for a while, then the report. The
// empty documents let a client tell a long verify from a daemon that hangs.
func (s *Endpoint) verify(w http.ResponseWriter, r *http.Request) {
	req, bad := body[VerifyRequest](r)
	if bad == nil {
		bad = checkTimeout(req.Timeout)
	}
	if bad != nil {
		s.fail(w, bad)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	events := &eventWriter{out: http.NewResponseController(w), encode: json.NewEncoder(w)}
	events.write(VerifyEvent{})
	report, err := func() (VerifyReport, error) {
		defer events.beat()()
		return s.daemon.Verify(r.Context(), req, events.progress)
	}()
	if err != nil {
		events.write(VerifyEvent{Error: asError(err)})
		return
	}
	report.SchemaVersion = SchemaVersion
	events.write(VerifyEvent{Report: &report})
}

// eventWriter writes the events of one answer. After a failed write the reader is gone and the rest is dropped: the
// request's context, which ends with the connection, stops the work.
type eventWriter struct {
	mu     sync.Mutex
	out    *http.ResponseController
	encode *json.Encoder
	last   time.Time // of the last progress
	broken bool
}

func (e *eventWriter) write(event VerifyEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken {
		return
	}
	if e.encode.Encode(event) != nil || e.out.Flush() != nil {
		e.broken = true
	}
}

// beat writes an empty event now and then until the returned function has returned, so that a comparison that panics
// leaves no writer behind.
func (e *eventWriter) beat() (stop func()) {
	done := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				e.write(VerifyEvent{})
			}
		}
	})
	return func() { close(done); beats.Wait() }
}

// progress passes on only as many reports as a person can see, and always the last one.
func (e *eventWriter) progress(p VerifyProgress) {
	e.mu.Lock()
	now := time.Now()
	due := now.Sub(e.last) >= progressRate || p.Files == p.FilesTotal && p.Bytes == p.BytesTotal
	if due {
		e.last = now
	}
	e.mu.Unlock()
	if due {
		e.write(VerifyEvent{Progress: &p})
	}
}
