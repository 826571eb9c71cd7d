package document

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// batchBytes is how many stored bytes of attachments are queued in one transaction.
const batchBytes = 1 << 20

// queueFolder queues the new files next to a main transcript. done reports whether all of them are queued.
func (c *Collector) queueFolder(ctx context.Context, id tail.FileID, packer *outbox.Packer,
	now bool) (done bool, err error) {
	t, ok := c.Files.File(id)
	if !ok || t.File.Kind != tail.Main {
		return true, nil
	}
	dest, cwd, err := c.destination(ctx, t)
	if dest == "" || err != nil {
		return err == nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(t.File.Path)) // the folder may be a link
	if err != nil {
		return true, nil // the folder is gone or cannot be listed: status reports it
	}
	defer root.Close()
	folder := sessionFolder(t.File)
	files, err := list(root, folder)
	if err != nil {
		c.Log.Warn("cannot list the attachments of a transcript", "err", err)
	}
	if len(files) == 0 {
		return true, nil
	}
	queued, err := c.Projections.Attachments.Queued(ctx, dest, id)
	if err != nil {
		return false, err
	}
	b := batch{
		Collector: c, root: root, file: t.File, folder: folder, dest: dest, masker: c.Masking.For(dest, cwd), packer: packer,
		done: true,
	}
	for i := range files {
		f := &files[i]
		was, known := queued[f.name]
		same := known && was.Size == f.info.Size() && was.ModTime == f.info.ModTime().UnixNano()
		if same || f.info.Size() > c.Settings.BlobCap() {
			continue
		}
		if age := time.Since(f.info.ModTime()); !now && age >= 0 && age < minAge {
			b.done = false
			continue
		}
		if err := b.add(ctx, f); err != nil {
			return false, err
		}
	}
	return b.done, b.commit(ctx)
}

// destination returns where the attachments of a main transcript go ("" for nowhere), and its project's folder.
func (c *Collector) destination(ctx context.Context, t tail.Tracked) (dest, cwd string, err error) {
	facts, known, err := c.Projections.State.Files.Routing(ctx, t.File.ID)
	if err != nil || !known || !facts.Decided {
		return "", "", err
	}
	dest, _ = c.Router.Destination(&facts)
	if dest != facts.Dest || !c.Servers.Takes(dest, outbox.Blob) {
		return "", "", nil // a transcript that is read again for another server is marked again
	}
	return dest, facts.Stream.Cwd, nil
}

// batch collects files of one folder for a transaction.
type batch struct {
	*Collector
	root         *os.Root
	file         tail.File
	folder, dest string
	masker       *redact.Masker
	packer       *outbox.Packer
	files        []projection.Attachment
	rows         []outbox.Batch
	stored       int
	done         bool // no file was left for later
}

// add reads a file. A file that is changing is postponed; one that cannot be read waits for the next lines.
func (b *batch) add(ctx context.Context, f *listedFile) error {
	if !b.Projections.State.HasCapacity(false) {
		b.done = false
		return nil
	}
	read, content, err := f.read(b.root, b.folder, b.masker)
	switch {
	case errors.Is(err, errChanging):
		b.done = false
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		b.Log.Warn("cannot read an attachment", "err", err)
		return nil
	}
	media := "text/plain"
	if strings.HasSuffix(read.Name, ".json") {
		media = "application/json"
	}
	row := b.packer.Blob(outbox.BlobRef{
		SHA256: read.SHA256, Name: read.Name, Media: media, Size: read.Size,
		Root: b.root.Name(), Path: path.Join(b.folder, read.Name),
	}, content)
	b.files, b.rows = append(b.files, read), append(b.rows, row)
	if b.stored += len(row.Frame); b.stored < batchBytes {
		return nil
	}
	return b.commit(ctx)
}

func (b *batch) commit(ctx context.Context) error {
	if len(b.files) == 0 {
		return nil
	}
	err := b.Projections.Attachments.Queue(ctx, b.dest, b.file.ID, b.files, b.rows)
	b.files, b.rows, b.stored = nil, nil, 0
	return err
}
