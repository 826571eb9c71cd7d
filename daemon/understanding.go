package daemon

import (
	"context"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// derivePolicy adapts the daemon to derive.Policy.
type derivePolicy struct{ d *Daemon }

func (p derivePolicy) Excluded(t *tail.Tracked, f *state.Facts) bool {
	if p.d.desk.graves.has(p.d.desk.streamOf(f, t.File)) {
		return true
	}
	_, why := p.d.goesTo(f)
	return why != ""
}

func (p derivePolicy) MessageLimits() derive.MessageLimits {
	c := p.d.conf.Load()
	return derive.MessageLimits{Kept: c.MessagesKept, Input: c.MessageInputLimit, Output: c.MessageOutputLimit}
}

// wireDeriver makes the deriver and its observers. It comes after the relay and the tailer.
func (d *Daemon) wireDeriver(observers ...derive.Observer) {
	d.derive = derive.New(derive.Config{LineCap: d.cfg.LineCap, Log: d.log}, d.db, d.tailer, derivePolicy{d}, observers...)
	d.relay.derive = d.derive
}

// Messages answers a session's message log as its transcript stands now.
func (d *Daemon) Messages(ctx context.Context, q control.MessagesQuery) (control.Messages, error) {
	s, err := d.sessionNamed(ctx, q.Session)
	if err != nil {
		return control.Messages{SchemaVersion: control.SchemaVersion, Offset: q.Offset, Messages: []control.Message{}}, err
	}
	return d.derive.Messages(ctx, s.id, s.name, q.Page)
}

// ClearMessages empties a session's message log.
func (d *Daemon) ClearMessages(ctx context.Context, session string) (control.ClearResult, error) {
	s, err := d.sessionNamed(ctx, session)
	if err != nil {
		return control.ClearResult{SchemaVersion: control.SchemaVersion}, err
	}
	return d.derive.ClearMessages(ctx, s.id, s.name)
}
