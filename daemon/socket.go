package daemon

import (
	"context"

	"github.com/ccship/ccship/daemon/control"

	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/daemon/route"
)

// socket answers the control socket. Most requests go to the package they concern; the daemon answers the rest.
type socket struct {
	*Daemon
	messageLog
	checkpointList
	documentList
	comparer
	*proof.SyncWaiter
	*proof.Forgetter
	control.Inbox
}

var _ control.Daemon = socket{}

func (d *Daemon) socket() socket {
	return socket{d, messageLog{d}, checkpointList{d}, documentList{d}, d.comparer, d.syncer, d.forgetter, d.inbox}
}

// Probe probes the servers that have not answered for a while.
func (s socket) Probe(ctx context.Context, wait bool) { s.servers.Probe(ctx, wait) }

// messageLog answers for the logs of sessions.
type messageLog struct{ d *Daemon }

// Messages answers the message log of a session's current transcript.
func (a messageLog) Messages(ctx context.Context, q control.MessagesQuery) (control.Messages, error) {
	s, err := a.d.router.Lookup(q.Session, a.d.tailer)
	if err != nil {
		return control.Messages{SchemaVersion: control.SchemaVersion, Offset: q.Offset, Messages: []control.Message{}}, err
	}
	return a.d.derive.Messages(ctx, s.ID, s.Name, q.Page)
}

// ClearMessages empties a session's message log.
func (a messageLog) ClearMessages(ctx context.Context, session string) (control.ClearResult, error) {
	s, err := a.d.router.Lookup(session, a.d.tailer)
	if err != nil {
		return control.ClearResult{SchemaVersion: control.SchemaVersion}, err
	}
	return a.d.derive.ClearMessages(ctx, s.ID, s.Name)
}

// checkpointList answers for checkpoints and budgets.
type checkpointList struct{ d *Daemon }

// Checkpoints lists a session's checkpoints, or all of them, newest first.
func (a checkpointList) Checkpoints(ctx context.Context, q control.CheckpointsQuery) (control.Checkpoints, error) {
	var s route.Stream
	if q.Session != "" {
		var err error
		if s, err = a.d.router.Lookup(q.Session, a.d.tailer); err != nil {
			return control.Checkpoints{SchemaVersion: control.SchemaVersion, Checkpoints: []control.Checkpoint{}}, err
		}
	}
	return a.d.checkpoints.List(ctx, s.ID, q.Page)
}

// Checkpoint answers the checkpoint with an id.
func (a checkpointList) Checkpoint(ctx context.Context, id string) (control.CheckpointAnswer, error) {
	return a.d.checkpoints.Get(ctx, id)
}

// CreateCheckpoint makes a checkpoint of a session as it is now.
func (a checkpointList) CreateCheckpoint(ctx context.Context,
	req control.CheckpointRequest) (control.CheckpointAnswer, error) {
	s, err := a.d.router.Lookup(req.Session, a.d.tailer)
	if err != nil {
		return control.CheckpointAnswer{SchemaVersion: control.SchemaVersion}, err
	}
	return a.d.checkpoints.Create(ctx, s.ID, s.Name, req)
}

// Budgets answers how many tokens a session can hold; for "", the budgets of models and those set for sessions.
func (a checkpointList) Budgets(ctx context.Context, session string) (control.Budgets, error) {
	if session == "" {
		return a.d.checkpoints.AllBudgets(ctx)
	}
	s, err := a.d.router.Lookup(session, a.d.tailer)
	if err != nil {
		return control.Budgets{SchemaVersion: control.SchemaVersion, Budgets: []control.Budget{}}, err
	}
	return a.d.checkpoints.Budget(ctx, s.ID, s.Name)
}

// SetBudget sets how many tokens a session, or every session of a model, can hold.
func (a checkpointList) SetBudget(ctx context.Context, req control.BudgetRequest) (control.Budgets, error) {
	var s route.Stream
	if req.Session != "" {
		var err error
		if s, err = a.d.router.Lookup(req.Session, a.d.tailer); err != nil {
			return control.Budgets{SchemaVersion: control.SchemaVersion, Budgets: []control.Budget{}}, err
		}
	}
	return a.d.checkpoints.SetBudget(ctx, s.ID, s.Name, req)
}

// documentList answers for linked documents.
type documentList struct{ d *Daemon }

// Documents lists what is linked to a session.
func (a documentList) Documents(ctx context.Context, session string) (control.Documents, error) {
	name, err := a.session(ctx, session)
	if err != nil {
		return control.Documents{SchemaVersion: control.SchemaVersion, Documents: []control.Document{}}, err
	}
	return a.d.documents.List(ctx, name)
}

// LinkDocument links a file to a session.
func (a documentList) LinkDocument(ctx context.Context,
	req control.DocumentRequest) (list control.Documents, err error) {
	if req.Session, err = a.session(ctx, req.Session); err != nil {
		return list, err
	}
	return a.d.documents.Link(ctx, req)
}

// UnlinkDocument ends a link.
func (a documentList) UnlinkDocument(ctx context.Context,
	req control.DocumentRequest) (list control.Documents, err error) {
	if req.Session, err = a.session(ctx, req.Session); err != nil {
		return list, err
	}
	return a.d.documents.Unlink(ctx, req)
}

// AnswerLink makes an answer of ccship-mcp to Claude take effect.
func (a documentList) AnswerLink(_ context.Context, req control.LinkAnswerRequest) (control.LinkAnswer, error) {
	if req.Action != "link" && req.Action != "unlink" {
		return control.LinkAnswer{}, control.Usage("action is neither link nor unlink", "")
	}
	nonce := a.d.documents.Answer(req.Action == "link", req.Path)
	return control.LinkAnswer{SchemaVersion: control.SchemaVersion, Nonce: nonce}, nil
}

// session returns the session with this name, or the only one whose name begins with it.
func (a documentList) session(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", control.Usage("name a session", "")
	}
	loc, err := locator(a).Locate(ctx, name)
	if err == nil {
		return loc.Session, nil
	}
	found, e := a.d.router.Lookup(name, a.d.tailer)
	if e != nil {
		return "", e
	}
	loc, err = locator(a).Locate(ctx, found.Name)
	return loc.Session, err
}
