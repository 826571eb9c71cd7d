package document

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
)

// maxChanging is how long a file may be written before it is read as it is.
const maxChanging = 30 * time.Second

// check is the check of one document.
type check struct {
	t        *Tracker
	loc      Location
	folder   *folder
	document trackedDocument
	edited   bool  // one of Claude's tools has changed the file
	line     int64 // of that tool's result; -1: none
}

// run finds out whether there is a new version, and publishes it. again: the document should be checked again soon.
func (c *check) run(ctx context.Context) (again bool, err error) {
	d := &c.document
	if d.elsewhere(identityOf(c.folder.self)) {
		return false, c.problem(elsewhereProblem)
	}
	stamp, err := c.folder.Stamp(d.Path)
	switch {
	case errors.Is(err, errGone):
		return c.gone(ctx)
	case err != nil:
		d.missing = false
		return false, c.problem(err.Error())
	}
	d.missing, d.problem = false, c.loc.problem()
	if !c.ready(stamp) {
		c.t.put(*d, false)
		return d.unproven || !d.changingSince.IsZero(), nil
	}
	content, err := c.folder.Read(d.Path, c.t.Settings.Config().DocumentCap, outbox.BlobInRow)
	if errors.Is(err, errGone) {
		return true, nil
	}
	if err != nil {
		return false, c.problem(err.Error())
	}
	if content.Torn && time.Since(d.changingSince) < maxChanging {
		c.changing(content.Stamp)
		return true, nil
	}
	return c.compare(ctx, &content)
}

// problem records why the document cannot be read. That is not an error of the check.
func (c *check) problem(why string) error {
	c.document.problem = why
	c.t.put(c.document, false)
	return nil
}

// changing notes that the file is being written.
func (c *check) changing(stamp projection.Stamp) {
	d := &c.document
	if d.newStamp = stamp; d.changingSince.IsZero() {
		d.changingSince = time.Now()
	}
	c.t.put(*d, false)
}

// ready reports whether to read the file now: it has changed and is no longer being written, or the server lacks it.
func (c *check) ready(stamp projection.Stamp) bool {
	d := &c.document
	if stamp == d.Stat && !d.Deleted {
		d.newStamp, d.changingSince = projection.Stamp{}, time.Time{}
		readable := d.TooLarge && d.Size <= c.t.Settings.Config().DocumentCap
		return readable || c.edited || c.unsent() || d.unproven && settled(stamp, time.Now())
	}
	if c.edited || stamp == d.newStamp || !d.changingSince.IsZero() && time.Since(d.changingSince) >= maxChanging {
		return true
	}
	c.changing(stamp)
	return false
}

// unsent reports whether the session's server lacks the last version, and it can be queued.
func (c *check) unsent() bool {
	return c.document.Dest != c.loc.Dest && c.t.canSend(c.loc)
}

// compare compares a content with the last version, and publishes a new version.
func (c *check) compare(ctx context.Context, content *content) (again bool, err error) {
	d := c.document
	c.loc = c.t.locationOf(c.loc, content.Path)
	same := !d.Deleted && content.Size == d.Size && content.SHA256 == d.SHA256 && content.TooLarge == d.TooLarge
	if content.TooLarge { // it was not read: compare the stamp
		same = same && content.Stamp == d.Stat
	}
	n := change{kind: kindModified, by: byOther, line: c.line, content: content, root: c.folder.Root()}
	if c.edited {
		n.by = byClaude
	}
	switch unsent := c.unsent(); {
	case same && !unsent:
		d.setStamp(content)
		d.problem = c.loc.problem()
		c.t.put(d, false)
		return d.unproven, nil
	case same:
		n.kind, n.by = kindLinked, d.AddedBy
		d.setStamp(content)
	default:
		d.newVersion(content, n.by)
		if unsent {
			n.kind, n.by = kindLinked, d.AddedBy // the server may not know the document at all
		}
	}
	d.problem = c.loc.problem()
	n.document = d
	return d.unproven, c.t.publish(ctx, c.loc, &n)
}

// gone handles a file that does not exist. The document counts as deleted if the next check does not find the file
// either: an editor may be replacing it.
func (c *check) gone(ctx context.Context) (again bool, err error) {
	d := c.document
	d.problem = c.loc.problem()
	if d.Deleted && !c.unsent() || !d.Deleted && !d.missing {
		d.missing = !d.Deleted
		c.t.put(d, false)
		return d.missing, nil
	}
	n := change{kind: kindDeleted, by: byOther, line: -1}
	if !d.Deleted {
		d.Version++
		d.ChangedAt, d.By = time.Now().UnixMilli(), n.by
	}
	d.Deleted, d.missing, d.Size, d.SHA256, d.TooLarge = true, false, 0, "", false
	d.Stat, d.newStamp, d.changingSince = projection.Stamp{}, projection.Stamp{}, time.Time{}
	n.document = d
	return false, c.t.publish(ctx, c.loc, &n)
}
