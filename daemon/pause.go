package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// A pause by the user ends sending, not reading: what is written meanwhile enters the outbox, up to its cap. It is kept
// in the state, so that a restart does not end it, and its end is a time of the clock on the wall, so that a machine
// that slept does not prolong it.

// keptPause is its name in the state.
const keptPause = "pause"

// mostPause is longer than anyone means.
const mostPause = 10 * 365 * 24 * time.Hour

// recallPause goes on with a pause of before the start.
func (d *Daemon) recallPause(ctx context.Context) error {
	text, err := d.db.Remembered(ctx, keptPause)
	if err != nil || text == nil {
		return err
	}
	var p control.Pause
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("read pause: %w", err)
	}
	d.pause.Store(&p)
	d.dests.setPaused(true)
	return nil
}

// Pause ends sending, for a while or until Resume.
func (d *Daemon) Pause(ctx context.Context, req control.PauseRequest) (control.PauseState, error) {
	now := time.Now().UTC().Round(0)
	p := &control.Pause{Since: now}
	if req.For != "" {
		length, err := time.ParseDuration(req.For)
		if err != nil || length <= 0 || length > mostPause {
			return control.PauseState{}, control.Usage(fmt.Sprintf("%q is no length of a pause", req.For),
				"a duration looks like 30m or 2h")
		}
		until := now.Add(length)
		p.Until = &until
	}
	text, err := json.Marshal(p)
	if err != nil {
		return control.PauseState{}, fmt.Errorf("write pause: %w", err)
	}
	d.pausing.Lock()
	defer d.pausing.Unlock()
	if err := d.db.Remember(ctx, keptPause, text); err != nil {
		return control.PauseState{}, err
	}
	was := d.pause.Swap(p)
	d.dests.setPaused(true)
	d.log.Info("paused by the user", "until", p.Until)
	return control.PauseState{SchemaVersion: control.SchemaVersion, Paused: true, Was: was != nil, Pause: p}, nil
}

// Resume ends the user's pause.
func (d *Daemon) Resume(ctx context.Context) (control.PauseState, error) {
	was, err := d.resume(ctx, func(*control.Pause) bool { return true })
	return control.PauseState{SchemaVersion: control.SchemaVersion, Was: was}, err
}

// resume ends the pause there is if over says so, and says whether it did.
func (d *Daemon) resume(ctx context.Context, over func(*control.Pause) bool) (bool, error) {
	d.pausing.Lock()
	defer d.pausing.Unlock()
	p := d.pause.Load()
	if p == nil || !over(p) {
		return false, nil
	}
	if err := d.db.Remember(ctx, keptPause, nil); err != nil {
		return false, err
	}
	d.pause.Store(nil)
	d.dests.setPaused(false)
	d.log.Info("the user's pause is over", "since", p.Since)
	return true, nil
}

// endPause ends a pause whose time is up.
func (d *Daemon) endPause(ctx context.Context) {
	_, err := d.resume(ctx, func(p *control.Pause) bool { return p.Until != nil && !time.Now().Round(0).Before(*p.Until) })
	if err != nil {
		d.log.Warn("cannot end the pause yet", "err", err)
	}
}

// Flush ends back-off and the pauses of servers that refuse. The user's own pause goes on.
func (d *Daemon) Flush(context.Context) (control.FlushResult, error) {
	d.dests.retry(false)
	return control.FlushResult{SchemaVersion: control.SchemaVersion, Paused: d.pause.Load() != nil, Waiting: d.db.Usage().Entries}, nil
}
