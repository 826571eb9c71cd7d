package daemon

import (
	"cmp"
	"context"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// remaskPage is how many transcripts one request compares.
const remaskPage = 20

// Remask finds the lines that servers have in another form than the masking rules in force produce, and sends them
// again unless the request is a dry run. The first request syncs; the last one also checks documents and attachments
// again.
func (d *Daemon) Remask(ctx context.Context, req control.RemaskRequest) (control.RemaskResult, error) {
	result := control.RemaskResult{SchemaVersion: control.SchemaVersion}
	if d.masking.Mode() == "off" {
		return result, control.Usage("nothing is masked: redact is off", "`ccship config redact on`")
	}
	if req.Offset == 0 { // what is still queued may be in the clear
		synced, err := d.syncer.Sync(ctx, control.SyncRequest{Wait: true})
		if err != nil {
			return result, err
		}
		if !synced.Done {
			return result, proof.SyncError(synced)
		}
	}
	if req.Old {
		return d.remaskOld(ctx, req)
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
	if err := d.clear.note(ctx, sum.Paths, from == 0); err != nil {
		return result, err
	}
	if to < len(files) {
		result.Next = to
		return result, nil
	}
	if req.DryRun {
		return result, nil
	}
	if err := d.clear.note(ctx, nil, true); err != nil {
		return result, err
	}
	return result, d.remaskFiles(ctx)
}

// remaskOld masks, or counts, what the servers of the known transcripts have stored in the clear.
func (d *Daemon) remaskOld(ctx context.Context, req control.RemaskRequest) (control.RemaskResult, error) {
	result := control.RemaskResult{SchemaVersion: control.SchemaVersion}
	routings, err := d.db.Files.Routings(ctx)
	if err != nil {
		return result, err
	}
	var dests []string
	for _, f := range routings {
		if f.Decided && f.Dest != "" {
			dests = append(dests, f.Dest)
		}
	}
	slices.Sort(dests)
	old, err := d.remasker.Run(ctx, slices.Compact(dests), req.Offset, req.DryRun)
	result.Old = &old
	return result, err
}

// remaskFiles has documents and attachments read again. A file that is masked differently now becomes a new version.
func (d *Daemon) remaskFiles(ctx context.Context) error {
	d.documents.Recheck()
	for _, dest := range d.db.Outbox.KnownDestinations() {
		if !d.servers.Takes(dest, outbox.Blob) || d.masking.For(dest, "") == nil {
			continue
		}
		if err := d.projections.Attachments.Forget(ctx, dest, 0); err != nil {
			return err
		}
	}
	d.attachments.ListAll()
	return nil
}
