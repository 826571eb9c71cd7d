package daemon

import (
	"context"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
)

// Outbox lists what waits, by transcript and server.
func (d *Daemon) Outbox(ctx context.Context, p control.Page) (control.OutboxList, error) {
	s := d.Status(ctx)
	rows, next, err := delivery.Rows(ctx, d.db, p)
	if err != nil {
		return control.OutboxList{}, err
	}
	if s.Servers == nil {
		s.Servers = []control.Server{}
	}
	return control.OutboxList{
		SchemaVersion: control.SchemaVersion, Outbox: *s.Outbox, Pause: s.Pause, Servers: s.Servers, Rows: rows, Next: next,
	}, nil
}

// DeadLetters lists the entries that servers refuse for their content.
func (d *Daemon) DeadLetters(ctx context.Context) (control.DeadLetters, error) {
	return delivery.DeadLetters(ctx, d.db)
}

// RetryDead puts dead letters back into the outbox.
func (d *Daemon) RetryDead(ctx context.Context, req control.DeadRequest) (control.DeadResult, error) {
	return delivery.RetryDead(ctx, d.db, d.reconciler, req)
}

// DropDead removes dead letters for good.
func (d *Daemon) DropDead(ctx context.Context, req control.DeadRequest) (control.DeadResult, error) {
	return delivery.DropDead(ctx, d.db, req)
}

// DropServer removes what waits for a retired server, with its dead letters.
func (d *Daemon) DropServer(ctx context.Context, req control.DropServerRequest) (control.DropServerResult, error) {
	return d.servers.DropServer(ctx, req)
}

// Pause ends sending, for a while or until Resume.
func (d *Daemon) Pause(ctx context.Context, req control.PauseRequest) (control.PauseState, error) {
	return d.pause.Begin(ctx, req)
}

// Resume ends the user's pause.
func (d *Daemon) Resume(ctx context.Context) (control.PauseState, error) {
	was, err := d.pause.End(ctx)
	return control.PauseState{SchemaVersion: control.SchemaVersion, Was: was}, err
}

// Flush ends every wait: back-off, that for servers that refuse, and the Retry-After of servers. The user's own pause
// goes on.
func (d *Daemon) Flush(context.Context) (control.FlushResult, error) {
	d.servers.Flush()
	d.reconciler.Retry()
	return control.FlushResult{
		SchemaVersion: control.SchemaVersion, Paused: d.pause.Current() != nil, Waiting: d.db.Outbox.Usage().Entries,
	}, nil
}
