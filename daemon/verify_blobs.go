package daemon

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// besideNamed is how many missing files a difference names.
const besideNamed = 5

// compareBeside compares the files beside transcripts with what the server has. files are transcripts on disk.
func (v *verifier) compareBeside(ctx context.Context, files []tail.Tracked, facts map[tail.FileID]state.Facts) error {
	roots := map[string]*os.Root{}
	defer func() {
		for _, r := range roots {
			r.Close()
		}
	}()
	for _, t := range files {
		f := facts[t.File.ID]
		if _, out := v.optedOut[t.File.ID]; out || t.File.Kind != tail.Main || !f.Decided {
			continue
		}
		root := roots[t.File.Root]
		if root == nil {
			var err error
			if root, err = os.OpenRoot(t.File.Root); err != nil {
				continue // it cannot be listed, which the sync has told
			}
			roots[t.File.Root] = root
		}
		if err := v.compareFolder(ctx, root, &t, &f); err != nil {
			return err
		}
	}
	return nil
}

// noteDeadBlob takes in a dead letter that is no line.
func (v *verifier) noteDeadBlob(l *state.Dead) {
	if l.Batch.Kind != outbox.Blob {
		return
	}
	id := tail.FileID(l.Stream.ID)
	if v.deadBlobs[id] == nil {
		v.deadBlobs[id] = map[string]string{}
	}
	v.deadBlobs[id][l.Batch.Blob.Name] = l.Batch.Blob.SHA256
}

// compareFolder compares the files beside one transcript.
func (v *verifier) compareFolder(ctx context.Context, root *os.Root, t *tail.Tracked, f *state.Facts) error {
	here, tooLarge, unread := v.d.attachments.OnDisk(root, t.File)
	v.report.Attachments.TooLarge += tooLarge
	if len(here) == 0 && unread == nil {
		return nil
	}
	if !v.d.dests.takes(f.Dest, outbox.Blob) {
		v.report.Attachments.Unproven += len(here)
		return nil
	}
	missing, refused, err := v.missingBeside(ctx, here, t, f)
	if len(missing) > 0 && err == nil {
		// One that has come since the sync is on its way.
		if err := v.d.deliverAttachments(ctx, t.File.ID); err != nil && ctx.Err() != nil {
			return err
		}
		missing, refused, err = v.missingBeside(ctx, here, t, f)
	}
	if err != nil {
		return err
	}
	v.report.Attachments.Files += len(here)
	for i := range here {
		v.report.Attachments.Bytes += here[i].Size
	}
	v.report.Attachments.Missing += len(missing)
	v.report.Attachments.Refused += refused
	row := v.row(t, f)
	if unread != nil {
		v.report.Differences = append(v.report.Differences, *difference(row, "a file beside it cannot be read: "+unread.Error()))
	}
	if n := len(missing); n > 0 {
		names := strings.Join(missing[:min(n, besideNamed)], ", ")
		if n > besideNamed {
			names += fmt.Sprintf(" and %d more", n-besideNamed)
		}
		v.report.Differences = append(v.report.Differences, *difference(row, "files beside it are not on the server as they are on disk: "+names))
	}
	return nil
}

// missingBeside names the files that the server does not have with their bytes, but for those it refuses.
func (v *verifier) missingBeside(ctx context.Context, here []state.BesideFile, t *tail.Tracked, f *state.Facts) (missing []string, refused int, err error) {
	list, err := v.d.dests.reader(f.Dest).Blobs(ctx, remote.Ref{Session: f.Stream.SessionID, Machine: &v.d.origin.Machine})
	if err != nil && !remote.Is(err, control.CodeNoSession) {
		return nil, 0, err
	}
	for i := range here {
		h := &here[i]
		switch {
		case slices.ContainsFunc(list, func(b remote.Blob) bool { return b.Name == h.Name && b.SHA256 == h.SHA256 }):
		case v.deadBlobs[t.File.ID][h.Name] == h.SHA256:
			refused++
		default:
			missing = append(missing, h.Name)
		}
	}
	return missing, refused, nil
}
