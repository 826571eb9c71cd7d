package daemon

import (
	"context"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// Documents lists what is linked to a session.
func (d *Daemon) Documents(ctx context.Context, session string) (control.Documents, error) {
	name, err := d.documentsOf(ctx, session)
	if err != nil {
		return control.Documents{SchemaVersion: control.SchemaVersion, Documents: []control.Document{}}, err
	}
	return d.linked(ctx, name)
}

// LinkDocument links a file to a session.
func (d *Daemon) LinkDocument(ctx context.Context, req control.DocumentRequest) (control.Documents, error) {
	return d.relink(ctx, req, d.documents.link)
}

// UnlinkDocument ends a link.
func (d *Daemon) UnlinkDocument(ctx context.Context, req control.DocumentRequest) (control.Documents, error) {
	return d.relink(ctx, req, d.documents.unlink)
}

func (d *Daemon) relink(ctx context.Context, req control.DocumentRequest, do func(context.Context, linkage) error) (control.Documents, error) {
	session, err := d.documentsOf(ctx, req.Session)
	if err != nil {
		return control.Documents{}, err
	}
	if err := do(ctx, linkage{session: session, base: req.Base, path: req.Path, by: byUser, line: -1}); err != nil {
		return control.Documents{}, refused(err)
	}
	d.documents.stirred(session, nil)
	return d.linked(ctx, session)
}

// documentsOf is the session that somebody means by its name, or by a beginning that only one has.
func (d *Daemon) documentsOf(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", control.Usage("name a session", "")
	}
	s, err := d.siteOf(ctx, name)
	if err == nil {
		return s.session, nil
	}
	named, e := d.router.Lookup(name, d.tailer)
	if e != nil {
		return "", e
	}
	s, err = d.siteOf(ctx, named.Name)
	return s.session, err
}

func (d *Daemon) linked(ctx context.Context, session string) (control.Documents, error) {
	a := control.Documents{SchemaVersion: control.SchemaVersion, Session: session, Documents: []control.Document{}}
	s, err := d.siteOf(ctx, session)
	if err != nil {
		return a, err
	}
	a.Cwd = s.cwd
	for _, p := range d.documents.papers(session, true) {
		if p.problem == "" {
			p.problem = s.problem()
		}
		if p.problem == "" && p.misses > 0 && p.Dest == "" {
			p.problem = missedProblem
		}
		a.Documents = append(a.Documents, control.Document{
			Path: p.Path, AddedAt: time.UnixMilli(p.AddedAt).UTC(), ChangedAt: time.UnixMilli(p.ChangedAt).UTC(), Version: p.Version,
			Size: p.Size, SHA256: p.SHA256, Deleted: p.Deleted, TooLarge: p.TooLarge, Problem: p.problem,
		})
	}
	return a, nil
}
