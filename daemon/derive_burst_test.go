package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ccship/ccship/state"
)

// More transcripts at once than the memory takes settle on a disk that stands still for a while and is slow then: all
// of them are understood, each once, and nothing is owed.
func TestBurstSettles(t *testing.T) {
	const sessions = mostBurst + mostHot
	w := newWorld(t)
	for i := range sessions {
		c := chat{session: fmt.Sprintf("%08x-0000-4000-8000-00000000000b", i)}
		w.write(transcriptOf(c.session), c.prompt("one")+c.compaction())
	}
	w.watching()
	w.stop()
	w.emptyState("sessions", "messages", "checkpoints") // as if it were yet to be understood
	stuck, freed := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(freed) })
	first := sync.OnceFunc(func() { close(stuck) })
	db, err := state.Open(t.Context(), state.Options{Path: filepath.Join(w.cfg.StateDir, "state.db"), Fault: func(step string) error {
		if step == "put session" {
			first()
			<-freed
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	defer free()
	v := newDeriver(db, w.cfg.Log)
	v.where, v.lineCap = whereNothing, w.cfg.LineCap
	v.observers = append(v.observers, &marker{db: db})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.run(ctx) }()
	<-stuck
	w.until("the memory is full", func() bool { return v.folded.Load() >= 2*mostBurst })
	free()
	w.until("everything is settled", v.settled)
	list, _, err := db.Checkpoints(t.Context(), 0, 0, 2*sessions)
	if err != nil || len(list) != sessions || v.folded.Load() != 2*sessions {
		t.Errorf("%d checkpoints of %d lines, err %v; want %d", len(list), v.folded.Load(), err, sessions)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if v.settled(); v.owed != 0 || v.flight {
		t.Errorf("%d owe something, flight %v", v.owed, v.flight)
	}
}
