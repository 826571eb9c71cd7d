package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/verify"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// remaskPage is how many transcripts one request compares.
const remaskPage = 20

// Remask finds the lines that the rules of masking in force would send otherwise than servers have them, and has them
// sent again unless the request is for a dry run. The first request syncs; the last one has documents and attachments
// looked at again.
func (d *Daemon) Remask(ctx context.Context, req control.RemaskRequest) (control.RemaskResult, error) {
	result := control.RemaskResult{SchemaVersion: control.SchemaVersion}
	if d.masking.Mode() == "off" {
		return result, control.Usage("nothing is masked: redact is off", "`ccship config set redact on`")
	}
	if req.Offset == 0 {
		synced, err := d.syncer.Sync(ctx, control.SyncRequest{Wait: true})
		if err != nil {
			return result, err
		}
		if !synced.Done {
			return result, verify.SyncError(synced)
		}
	}
	files := d.tailer.Files()
	slices.SortFunc(files, func(a, b tail.Tracked) int { return cmp.Compare(a.File.Path, b.File.Path) })
	result.Total = len(files)
	from := min(max(0, req.Offset), len(files))
	to := min(from+remaskPage, len(files))
	sum, err := d.reconciler.Remask(ctx, files[from:to], req.DryRun)
	if err != nil {
		return result, err
	}
	result.Transcripts, result.Lines, result.Clear, result.Resent = sum.Transcripts, sum.Lines, sum.Clear, sum.Resent
	d.noteClear(sum.Paths, from == 0)
	if to < len(files) {
		result.Next = to
		return result, nil
	}
	if !req.DryRun {
		d.noteClear(nil, true)
		err = d.remaskFiles(ctx)
	}
	return result, err
}

// remaskFiles has documents and attachments read again: what is masked otherwise now is sent as a new version.
func (d *Daemon) remaskFiles(ctx context.Context) error {
	d.documents.Recheck()
	for _, dest := range d.db.Outbox.KnownDestinations() {
		if !d.servers.Takes(dest, outbox.Blob) || d.masking.For(dest, "") == nil {
			continue
		}
		if err := d.projections.Attachments.Forget(ctx, dest); err != nil {
			return err
		}
	}
	d.attachments.ListAll()
	return nil
}

// noteClear keeps which transcripts a server has with secrets in clear; first: those known before do not count.
func (d *Daemon) noteClear(paths []string, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if first {
		d.clear = nil
	}
	d.clear = append(d.clear, paths...)
}

// clearAdvice names transcripts that a server has with secrets in clear.
func (d *Daemon) clearAdvice() []control.Advice {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.clear) == 0 {
		return nil
	}
	text := "sent before secrets were masked: " + d.clear[0]
	if more := len(d.clear) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return []control.Advice{{Kind: "secrets_in_clear", Text: text,
		Hint: "`ccship redact apply` sends the lines again with their secrets masked"}}
}
