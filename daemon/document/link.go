package document

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
)

// maxLinked is how many documents a session can have: the introduction lists all of them.
const maxLinked = 100

// linkRequest asks for a file to be linked or unlinked.
type linkRequest struct {
	session    string
	base, path string
	by         string // byUser, byMCP or byViewer
	private    bool   // the user allows a file for keys or passwords
	line       int64  // of the transcript; -1: none
	id         string // of the viewer's request; "" for the others
	asks       []projection.LinkRequest
}

// link links a file. Linking a file that is already linked does nothing. A refusal is a *refusedError.
func (t *Tracker) link(ctx context.Context, r linkRequest) error {
	t.work.Lock()
	defer t.work.Unlock()
	loc, err := t.Locator.Locate(ctx, r.session)
	if err != nil {
		return err
	}
	folder, err := t.open(&loc)
	if err != nil {
		return err
	}
	defer folder.Close()
	folder.AllowPrivate = r.private && r.by == byUser
	name, err := find(folder, &r)
	if err != nil {
		return err
	}
	loc = t.locationOf(loc, folder.Path(name))
	if r.id != "" && loc.Withheld != "" { // this answer, and no other, can be sent
		return &refusedError{Message: name + " stays on that machine", Hint: "its folder is excluded there"}
	}
	d, linked := t.lookUp(loc.Session, folder, name)
	c := change{by: r.by, line: r.line, requestID: r.id, asks: r.asks}
	if d.Linked && !d.elsewhere(identityOf(folder.self)) {
		c.document = d
		if r.id != "" {
			t.confirm(&c, folder)
		}
		return t.publish(ctx, loc, &c)
	}
	if !d.Linked && linked >= maxLinked {
		return &refusedError{
			Message: fmt.Sprintf("the session has %d linked documents, and can have no more",
				linked), Hint: "`ccship link rm PATH` ends a link",
		}
	}
	c.document = d
	return t.linkNew(ctx, loc, folder, name, &c)
}

// find returns the name of the file that a request means. Claude may be in a subfolder, and mean a path below the
// folder in which it began.
func find(folder *folder, r *linkRequest) (string, error) {
	name, err := folder.Find(r.base, r.path)
	if err != nil && r.by == byMCP {
		if other, e := folder.Find("", r.path); e == nil {
			return other, nil
		}
	}
	return name, err
}

// lookUp returns what is known of a file of a session, and how many documents the session has.
func (t *Tracker) lookUp(session string, folder *folder, name string) (d trackedDocument, linked int) {
	d.Session, d.Path = session, name
	for _, known := range t.list(session, false) {
		if known.Linked {
			linked++
		}
		if known.Path == name || known.Linked && folder.Same(known.Path, name) {
			d = known
		}
	}
	return d, linked
}

// confirm makes c the answer to a viewer that asks for an existing link. It carries the content of the last version if
// the file still has it.
func (t *Tracker) confirm(c *change, folder *folder) {
	c.kind = kindLinked
	content, err := t.read(folder, c.document.Path)
	if err == nil && !content.Torn && content.SHA256 == c.document.SHA256 {
		c.content, c.root = content, folder.Root()
	}
}

// linkNew links a file that is not linked, or was linked in another folder.
func (t *Tracker) linkNew(ctx context.Context, loc Location, folder *folder, name string, c *change) error {
	content, err := t.read(folder, name)
	if err != nil {
		return err
	}
	loc = t.locationOf(loc, content.Path)
	c.content, c.root, c.kind = content, folder.Root(), kindLinked
	d := &c.document
	d.Linked, d.AddedAt, d.AddedBy = true, time.Now().UnixMilli(), c.by
	d.Folder, d.placed = identityOf(folder.self), true
	d.newVersion(content, c.by)
	d.problem = loc.problem()
	if content.TooLarge {
		c.catch = fmt.Sprintf("its content is not kept: %d bytes are more than the option document_cap allows", content.Size)
	}
	c.notice = c.catch != "" || c.by != byMCP && t.introduced(ctx, loc)
	return t.publish(ctx, loc, c)
}

// introduced reports whether a session's Claude may have started. Its introduction then lacks the link.
func (t *Tracker) introduced(ctx context.Context, loc Location) bool {
	if loc.File != 0 {
		return true
	}
	_, found, _ := t.Introductions.Get(ctx, loc.Session)
	return found
}

// read reads a document for a new version. If the file is being written, it tries a few times.
func (t *Tracker) read(folder *folder, name string) (*content, error) {
	for tries := 3; ; tries-- {
		c, err := folder.Read(name, t.Settings.Config().DocumentCap, outbox.BlobInRow)
		if errors.Is(err, errGone) {
			return nil, &refusedError{Message: name + " was removed", Hint: "a document must exist when it is linked"}
		}
		if err != nil || !c.Torn || tries == 0 {
			return &c, err
		}
	}
}

// unlink ends a link. The file need not exist any more. A refusal is a *refusedError.
func (t *Tracker) unlink(ctx context.Context, r linkRequest) error {
	t.work.Lock()
	defer t.work.Unlock()
	loc, err := t.Locator.Locate(ctx, r.session)
	if err != nil {
		return err
	}
	names := t.names(loc, &r)
	for _, d := range t.list(loc.Session, true) {
		if !slices.Contains(names, d.Path) {
			continue
		}
		d.Linked, d.problem = false, ""
		d.Version++
		d.ChangedAt, d.By = time.Now().UnixMilli(), r.by
		if r.id == "" { // a viewer gets its answer wherever the file lies
			loc = t.locationOf(loc, loc.path(&d))
		}
		return t.publish(ctx, loc, &change{document: d, kind: kindUnlinked, by: r.by, line: r.line, requestID: r.id,
			asks: r.asks})
	}
	return &refusedError{Message: r.path + " is not linked to the session", Hint: "`ccship link list` names what is"}
}

// names returns the names that a request to unlink may mean.
func (t *Tracker) names(loc Location, r *linkRequest) []string {
	names := append(names(r.base, r.path, loc.Cwd), r.path)
	folder, err := t.open(&loc)
	if err != nil {
		return names
	}
	defer folder.Close()
	names = append(names, folder.Names(r.base, r.path)...)
	if name, err := folder.Find(r.base, r.path); err == nil {
		names = append(names, name)
	}
	return names
}
