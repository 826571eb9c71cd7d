package document

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// List returns the documents linked to a session, given its full name.
func (t *Tracker) List(ctx context.Context, session string) (control.Documents, error) {
	a := control.Documents{SchemaVersion: control.SchemaVersion, Session: session, Documents: []control.Document{}}
	loc, err := t.Locator.Locate(ctx, session)
	if err != nil {
		return a, err
	}
	a.Cwd = loc.Cwd
	for _, d := range t.list(session, true) {
		if d.problem == "" {
			d.problem = loc.problem()
		}
		if d.problem == "" && d.failures > 0 && d.Dest == "" {
			d.problem = notSentProblem
		}
		a.Documents = append(a.Documents, control.Document{
			Path: d.Path, AddedAt: time.UnixMilli(d.AddedAt).UTC(), ChangedAt: time.UnixMilli(d.ChangedAt).UTC(),
			Version: d.Version, Size: d.Size, SHA256: d.SHA256, Deleted: d.Deleted, TooLarge: d.TooLarge, Problem: d.problem,
		})
	}
	return a, nil
}

// Link links a file to a session for the user, and returns the linked documents. req.Session is the full name.
func (t *Tracker) Link(ctx context.Context, req control.DocumentRequest) (control.Documents, error) {
	if err := t.link(ctx, userRequest(req)); err != nil {
		return control.Documents{}, controlError(err)
	}
	t.noteActivity(req.Session, nil)
	return t.List(ctx, req.Session)
}

// Unlink ends a link for the user, and returns the linked documents. req.Session is the full name.
func (t *Tracker) Unlink(ctx context.Context, req control.DocumentRequest) (control.Documents, error) {
	if err := t.unlink(ctx, userRequest(req)); err != nil {
		return control.Documents{}, controlError(err)
	}
	t.noteActivity(req.Session, nil)
	return t.List(ctx, req.Session)
}

func userRequest(req control.DocumentRequest) linkRequest {
	return linkRequest{
		session: req.Session, base: req.Base, path: req.Path, by: byUser, private: req.AllowSecret, line: -1,
	}
}

// controlError turns a refusal into an error of the control socket. It returns other errors as they are.
func controlError(err error) error {
	if r, ok := errors.AsType[*refusedError](err); ok {
		return control.BadDocument(r.Message, r.Hint)
	}
	return err
}
