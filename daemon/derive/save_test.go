package derive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// An observer that fails undoes what is not saved, and sees the lines again.
func TestFailingObserver(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	a := chat{Session: sessionA}
	h.startAndSync(r)
	h.send(sessionA, a.Prompt("one"))
	h.expect(r, "as written", "one!")
	kit.Locked(&r.mu, func() { r.fail = errors.New("broken") })
	h.write(sessionA, a.Prompt("two"))
	h.until("the observer sees it", func() bool { return r.last() != "" })
	kit.Locked(&r.mu, func() { r.fail, r.seen = nil, nil })
	h.until("the observer sees it again", func() bool { return r.last() == "two!" })
	h.until("the deriver has caught up", h.deriver.CaughtUp)
	m := h.messages(sessionA)
	kit.Check(t, m.Total == 2, "%+v", m)
}

// A disk that takes nothing for a while loses no effect, and makes none twice.
func TestSaveFailsForAWhile(t *testing.T) {
	h := newHarness(t)
	a := chat{Session: sessionA}
	h.delivered(map[string]string{sessionA: a.Prompt("one")})
	h.stop()
	working := make(chan struct{})
	h.fault = func(step string) error {
		select {
		case <-working:
			return nil
		default:
			if step == "put session" {
				return fmt.Errorf("no space: %w", os.ErrInvalid)
			}
			return nil
		}
	}
	projections := h.open()
	id := h.id(sessionA)
	d := h.alone()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	err := d.Query(ctx, id, func(s *FoldStep) error { s.Save(); return nil })
	kit.Check(t, err != nil, "a failed save is reported as done")
	close(working)
	h.until("it is saved", func() bool {
		u, _, err := projections.Sessions.Projection(t.Context(), id)
		return err == nil && u.Place.Line == 1
	})
	cancel()
	kit.Must(t, <-ended)
}

// One projection that cannot be saved does not keep the others from it.
func TestSavedOneByOne(t *testing.T) {
	h := newHarness(t)
	a, b := chat{Session: sessionA}, chat{Session: sessionB}
	projections := h.delivered(map[string]string{sessionA: a.Prompt("one"), sessionB: b.Prompt("one")})
	var all []projection.Derivation
	for _, session := range []string{sessionA, sessionB} {
		all = append(all, projection.Derivation{File: h.id(session), Projection: &projection.Projection{Place: projection.Place{Line: 1}}})
	}
	all[0].LinkRequests = []projection.LinkRequest{{Session: sessionA, Tool: strings.Repeat("t", 40_000)}} // no key is so long
	s := newSaver(projections)
	errs, err := projections.Commit(t.Context(), all)
	kit.Require(t, err != nil, "%v %v", "there are keys that long: ", errs)
	errs = s.saveEach(all, err)
	kit.Check(t, errs[0] != nil && errs[1] == nil, "%v", errs)
	_, saved, err := projections.Sessions.Projection(t.Context(), all[1].File)
	kit.Check(t, err == nil && saved, "%v %v", "the other is not saved: ", err)
}

// effectful is an observer that makes a checkpoint of every session that has a compaction.
type effectful struct{}

func (effectful) Begin(*FoldStep)     {}
func (effectful) End(*FoldStep) error { return nil }
func (effectful) Event(s *FoldStep, e *session.Event, _ bool) {
	if e.Kind == session.CompactionEvent {
		name := s.Facts.Stream.SessionID
		s.Effects.Checkpoints = append(s.Effects.Checkpoints, projection.Checkpoint{ID: "cp-" + name, Session: name, At: time.Now().UTC()})
	}
}

// More transcripts at once than the cache holds are all folded, each once, on a disk that stands still for a while.
func TestBurst(t *testing.T) {
	const sessions = maxBurst + maxCached
	h := newHarness(t)
	transcripts := map[string]string{}
	for i := range sessions {
		c := chat{Session: fmt.Sprintf("%08x-0000-4000-8000-00000000000b", i)}
		transcripts[c.Session] = c.Prompt("one") + c.Compaction()
	}
	h.delivered(transcripts)
	h.stop()
	h.emptyState("projections", "folds", "checkpoints") // as if nothing were folded yet
	stuck, freed := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(freed) })
	first := sync.OnceFunc(func() { close(stuck) })
	h.fault = func(step string) error {
		if step == "put session" {
			first()
			<-freed
		}
		return nil
	}
	projections := h.open()
	defer free()
	d := h.alone(effectful{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	<-stuck
	h.until("the cache is full", func() bool { return d.foldedLines.Load() >= 2*maxBurst })
	free()
	h.until("the deriver has caught up", d.CaughtUp)
	list, _, err := projections.Checkpoints.List(t.Context(), 0, 0, 2*sessions)
	kit.Check(t, err == nil && len(list) == sessions && d.foldedLines.Load() == 2*sessions,
		"%d checkpoints of %d lines, err %v; want %d", len(list), d.foldedLines.Load(), err, sessions)
	cancel()
	kit.Must(t, <-ended)
	kit.Check(t, d.schedule.unsaved == 0 && !d.saver.busy, "%d unsaved, saver busy %v", d.schedule.unsaved, d.saver.busy)
}

// failSaves answers the list in flight as a saver does whose disk is full.
func failSaves(d *Deriver, err error) {
	var results []saveResult
	for _, s := range <-d.saver.in {
		results = append(results, saveResult{save: s, err: err})
	}
	d.saver.out <- results
}

// A disk that takes nothing is tried again after a while, also with a full cache, which does not grow meanwhile.
func TestFullDiskIsNotRetriedAtOnce(t *testing.T) {
	h := newHarness(t)
	d := h.alone()
	for id := range tail.FileID(maxBurst) {
		p := &liveProjection{file: id + 1}
		d.cache.add(p)
		d.changed(p)
	}
	d.schedule.add(maxBurst+1, false)
	d.save(true)
	failSaves(d, errors.New("the disk is full"))
	kit.Check(t, !d.nextWork(t.Context()) && !d.saver.busy,
		"retried at once, or folded one more: %d in memory, saver busy %v", len(d.cache.projections), d.saver.busy)
	next := d.idle(time.Now())
	kit.Check(t, next > 0 && next <= retrySave, "retries in %v", next)
}

// A projection that is discarded while it is being saved does not count as unsaved any more: Wait would never return.
func TestDiscardedWhileSaved(t *testing.T) {
	h := newHarness(t)
	for name, err := range map[string]error{"saved": nil, "not saved": errors.New("the disk is full"), "stale": tail.ErrStale} {
		d := h.alone()
		d.schedule.begin()
		p := &liveProjection{file: 1}
		d.cache.add(p)
		effect := func() {
			p.effects.Notices = append(p.effects.Notices, projection.Notice{Session: sessionA})
			d.changed(p)
		}
		effect()
		d.save(true)
		effect()
		d.discard(p, errRewritten)
		failSaves(d, err)
		d.awaitSaves()
		kit.Check(t, d.CaughtUp() && len(d.cache.projections) == 0,
			"%s: %d unsaved, %d in memory", name, d.schedule.unsaved, len(d.cache.projections))
	}
}

// Before Run knows what an earlier daemon has left, no one is notified that all is folded.
func TestNotCaughtUpBeforeRun(t *testing.T) {
	h := newHarness(t)
	h.open()
	kit.Check(t, !h.alone().CaughtUp(), "caught up with what it does not know")
}

// Wait waits until what is scheduled is folded.
func TestWait(t *testing.T) {
	h, r := newHarness(t), &recorder{gate: make(chan struct{})}
	a := chat{Session: sessionA}
	h.write(sessionA, a.Prompt("one")+a.Compaction())
	h.start(r)
	kit.Must(t, h.tailer.Sync(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	kit.Err(t, "while it is being folded", context.DeadlineExceeded)(h.deriver.Wait(ctx))
	close(r.gate)
	h.sync()
	h.expect(r, "history with a compaction", "one")
}
