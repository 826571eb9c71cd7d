package sqlite

import (
	"context"
	"sync"
	"time"
)

const (
	// restShare is how many times as long as it took the last write of derived data is waited before the next while
	// lines come in: at most a twentieth of the time goes to background work.
	restShare = 19
	// restLive is the same after lines of live sessions: people wait for those.
	restLive = 2
	// quiet is how long no line has come in when nothing has to be left for them.
	quiet = 50 * time.Millisecond
	// restMax bounds the wait, so that one slow write is no long pause.
	restMax = 5 * time.Second
)

// pace spaces writes of derived data while lines come in. The zero value is ready.
type pace struct {
	mu    sync.Mutex
	until time.Time // guarded by mu
}

// wait returns when the pause is over, or before once idle reports that it is not needed.
func (p *pace) wait(ctx context.Context, idle func() bool) error {
	for {
		p.mu.Lock()
		rest := time.Until(p.until)
		p.mu.Unlock()
		if rest <= 0 || idle() {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(rest, quiet/2)):
		}
	}
}

// took begins a pause after a write.
func (p *pace) took(d time.Duration, live bool) {
	pause := restShare * d
	if live {
		pause = restLive * d
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(min(pause, restMax))
}

// idle says that no line is coming in.
func (s *Store) idle() bool {
	return s.ingesting.Load() == 0 && time.Now().UnixNano()-s.ingested.Load() > int64(quiet)
}
