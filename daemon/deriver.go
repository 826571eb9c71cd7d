package daemon

import (
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// derivePolicy adapts the daemon to derive.Policy.
type derivePolicy struct{ d *Daemon }

func (p derivePolicy) Excluded(t *tail.Tracked, f *state.Routing) bool {
	if p.d.router.Forgotten(p.d.router.StreamName(f, t.File)) {
		return true
	}
	_, why := p.d.router.Destination(f)
	return why != ""
}

func (p derivePolicy) Masker(f *state.Routing) *redact.Masker {
	dest, _ := p.d.router.Destination(f)
	return p.d.masking.For(dest, f.Stream.Cwd)
}

func (p derivePolicy) MessageLimits() derive.MessageLimits {
	c := p.d.conf.Load()
	return derive.MessageLimits{Kept: c.MessagesKept, Input: c.MessageInputLimit, Output: c.MessageOutputLimit}
}

// wireDeriver makes the deriver and its observers. It comes after the relay and the tailer.
func (d *Daemon) wireDeriver(observers ...derive.Observer) {
	d.derive = derive.New(derive.Config{LineCap: d.cfg.LineCap, Log: d.log}, d.projections, d.tailer, derivePolicy{d},
		observers...)
	d.relay.Listeners = []route.Listener{d.attachments, d.rewrites, d.derive}
	d.checkpoints = &derive.Checkpoints{Projections: d.projections, Deriver: d.derive}
}
