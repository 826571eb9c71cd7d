package daemon

import (
	"context"

	"github.com/ccship/ccship/daemon/checkpoint"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/relay"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// derivePolicy adapts the daemon to derive.Policy.
type derivePolicy struct{ d *Daemon }

func (p derivePolicy) Excluded(t *tail.Tracked, f *state.Facts) bool {
	if p.d.router.Forgotten(p.d.router.StreamName(f, t.File)) {
		return true
	}
	_, why := p.d.router.Destination(f)
	return why != ""
}

func (p derivePolicy) MessageLimits() derive.MessageLimits {
	c := p.d.conf.Load()
	return derive.MessageLimits{Kept: c.MessagesKept, Input: c.MessageInputLimit, Output: c.MessageOutputLimit}
}

// wireDeriver makes the deriver and its observers. It comes after the relay and the tailer.
func (d *Daemon) wireDeriver(observers ...derive.Observer) {
	d.derive = derive.New(derive.Config{LineCap: d.cfg.LineCap, Log: d.log}, d.db, d.tailer, derivePolicy{d}, observers...)
	d.relay.Listeners = []relay.Listener{d.attachments, d.rewrites, d.events, d.derive}
	d.checkpoints = checkpoint.New(d.db, d.derive)
}

// Messages answers a session's message log as its transcript stands now.
func (d *Daemon) Messages(ctx context.Context, q control.MessagesQuery) (control.Messages, error) {
	s, err := d.router.Lookup(q.Session, d.tailer)
	if err != nil {
		return control.Messages{SchemaVersion: control.SchemaVersion, Offset: q.Offset, Messages: []control.Message{}}, err
	}
	return d.derive.Messages(ctx, s.ID, s.Name, q.Page)
}

// ClearMessages empties a session's message log.
func (d *Daemon) ClearMessages(ctx context.Context, session string) (control.ClearResult, error) {
	s, err := d.router.Lookup(session, d.tailer)
	if err != nil {
		return control.ClearResult{SchemaVersion: control.SchemaVersion}, err
	}
	return d.derive.ClearMessages(ctx, s.ID, s.Name)
}

// Checkpoints lists a session's checkpoints, or all of them, newest first.
func (d *Daemon) Checkpoints(ctx context.Context, q control.CheckpointsQuery) (control.Checkpoints, error) {
	var s route.Stream
	if q.Session != "" {
		var err error
		if s, err = d.router.Lookup(q.Session, d.tailer); err != nil {
			return control.Checkpoints{SchemaVersion: control.SchemaVersion, Checkpoints: []control.Checkpoint{}}, err
		}
	}
	return d.checkpoints.List(ctx, s.ID, q.Page)
}

// Checkpoint answers the checkpoint with an id.
func (d *Daemon) Checkpoint(ctx context.Context, id string) (control.CheckpointAnswer, error) {
	return d.checkpoints.Get(ctx, id)
}

// CreateCheckpoint makes a checkpoint of a session as it stands.
func (d *Daemon) CreateCheckpoint(ctx context.Context, req control.CheckpointRequest) (control.CheckpointAnswer, error) {
	s, err := d.router.Lookup(req.Session, d.tailer)
	if err != nil {
		return control.CheckpointAnswer{SchemaVersion: control.SchemaVersion}, err
	}
	return d.checkpoints.Create(ctx, s.ID, s.Name, req)
}

// Init returns what a session's Claude is told at its start.
func (d *Daemon) Init(ctx context.Context, q control.InitQuery) (control.Init, error) {
	return d.inbox.Init(ctx, q)
}

// Pending returns what a session's Claude has not been told yet, or takes the confirmation that it has arrived.
func (d *Daemon) Pending(ctx context.Context, req control.PendingRequest) (control.Pending, error) {
	return d.inbox.Pending(ctx, req)
}

// Budgets says how many tokens a session can hold; for "" what is known about models, and what was set for sessions.
func (d *Daemon) Budgets(ctx context.Context, session string) (control.Budgets, error) {
	if session == "" {
		return d.checkpoints.AllBudgets(ctx)
	}
	s, err := d.router.Lookup(session, d.tailer)
	if err != nil {
		return control.Budgets{SchemaVersion: control.SchemaVersion, Budgets: []control.Budget{}}, err
	}
	return d.checkpoints.Budget(ctx, s.ID, s.Name)
}

// SetBudget sets how many tokens a session, or every session of a model, can hold.
func (d *Daemon) SetBudget(ctx context.Context, req control.BudgetRequest) (control.Budgets, error) {
	var s route.Stream
	if req.Session != "" {
		var err error
		if s, err = d.router.Lookup(req.Session, d.tailer); err != nil {
			return control.Budgets{SchemaVersion: control.SchemaVersion, Budgets: []control.Budget{}}, err
		}
	}
	return d.checkpoints.SetBudget(ctx, s.ID, s.Name, req)
}
