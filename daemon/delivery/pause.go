package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
)

// Pause is the user's pause. It stops sending, not reading: new lines enter the outbox, up to its cap. The state keeps
// it across a restart. It ends at a wall-clock time, so that sleep of the machine does not prolong it. Safe for
// concurrent use.
type Pause struct {
	servers *Servers
	log     *slog.Logger

	changing sync.Mutex // held while kept and servers are changed
	kept     *state.Persisted[*control.Pause]
}

// longestPause is longer than any useful pause.
const longestPause = 10 * 365 * 24 * time.Hour

// LoadPause restores a pause that began before the start. Call it before the servers run.
func LoadPause(ctx context.Context, db *state.DB, servers *Servers, log *slog.Logger) (*Pause, error) {
	kept, err := state.LoadPersisted[*control.Pause](ctx, db, "pause")
	if err != nil {
		return nil, err
	}
	servers.setPaused(kept.Get() != nil)
	return &Pause{servers: servers, log: log, kept: kept}, nil
}

// Current returns the pause; nil when there is none. The caller must not change it.
func (p *Pause) Current() *control.Pause { return p.kept.Get() }

// Begin stops sending, for a while or until End. It replaces an earlier pause.
func (p *Pause) Begin(ctx context.Context, req control.PauseRequest) (control.PauseState, error) {
	now := time.Now().UTC().Round(0)
	next := &control.Pause{Since: now}
	if req.For != "" {
		length, err := time.ParseDuration(req.For)
		if err != nil || length <= 0 || length > longestPause {
			return control.PauseState{}, control.Usage(fmt.Sprintf("invalid pause duration %q", req.For),
				"a duration looks like 30m or 2h")
		}
		until := now.Add(length)
		next.Until = &until
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	was := p.kept.Get() != nil
	if err := p.set(ctx, next); err != nil {
		return control.PauseState{}, err
	}
	p.log.Info("paused by the user", "until", next.Until)
	return control.PauseState{SchemaVersion: control.SchemaVersion, Paused: true, Was: was, Pause: next}, nil
}

// End ends the pause. It reports whether there was one.
func (p *Pause) End(ctx context.Context) (bool, error) {
	return p.endIf(ctx, func(*control.Pause) bool { return true })
}

// Expire ends the pause when its time is up.
func (p *Pause) Expire(ctx context.Context) error {
	_, err := p.endIf(ctx, func(c *control.Pause) bool { return c.Until != nil && !time.Now().Round(0).Before(*c.Until) })
	return err
}

func (p *Pause) endIf(ctx context.Context, over func(*control.Pause) bool) (bool, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	was := p.kept.Get()
	if was == nil || !over(was) {
		return false, nil
	}
	if err := p.set(ctx, nil); err != nil {
		return false, err
	}
	p.log.Info("the user's pause is over", "since", was.Since)
	return true, nil
}

// set changes the pause. The caller holds changing.
func (p *Pause) set(ctx context.Context, next *control.Pause) error {
	err := p.kept.Change(ctx, func(*control.Pause) (*control.Pause, bool) { return next, true })
	if err == nil {
		p.servers.setPaused(next != nil)
	}
	return err
}
