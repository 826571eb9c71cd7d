package daemon

import (
	"context"
	"os"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/daemon/verify"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// Verify syncs, and then compares the transcripts on disk with what the servers hold.
func (d *Daemon) Verify(ctx context.Context, req control.VerifyRequest,
	progress func(control.VerifyProgress)) (control.VerifyReport, error) {
	synced, err := d.Sync(ctx, control.SyncRequest{Wait: true, Timeout: req.Timeout})
	if err != nil {
		return control.VerifyReport{}, err
	}
	if !synced.Done && !slices.Contains([]string{reasonTimeout, reasonRefused, reasonUnreadable, reasonFull},
		synced.Reason) {
		return control.VerifyReport{}, syncError(synced)
	}
	options := verify.Options{Session: req.Session, Deep: req.Deep, Progress: progress}
	if !synced.Done { // what cannot be listed cannot be compared either
		options.Incomplete = synced.Detail
	}
	report, err := verify.Run(ctx, verify.Deps{
		State: d.db, Files: d.tailer, Servers: d.servers, Rules: verifyRules{d, d.router.Rules()},
		Attachments: verifyAttachments{d}, Masking: d.masking, Origin: d.origin, LineCap: d.cfg.LineCap,
	}, options)
	if err != nil {
		return control.VerifyReport{}, err
	}
	report.Waiting, report.Withheld, report.Resumed = synced.Waiting, synced.Withheld, synced.Resumed
	report.Retired = synced.Retired
	if req.Session == "" {
		var clear []string
		for _, t := range report.Transcripts {
			if t.Clear > 0 {
				clear = append(clear, t.Path)
			}
		}
		d.noteClear(clear, true)
	}
	d.memoryUsed.Store(true)
	return report, nil
}

// verifyRules adapts the daemon to verify.Rules.
type verifyRules struct {
	d     *Daemon
	rules *route.Rules
}

func (r verifyRules) Excluded(facts map[tail.FileID]state.Routing) map[tail.FileID]string {
	excluded := r.d.excludedFiles()
	for id, out := range r.d.router.ExcludedNow(facts) {
		excluded[id] = out.Why
	}
	return excluded
}

func (r verifyRules) LeavesOut(f *tail.File, line []byte) bool {
	if f.Kind == tail.History {
		return r.d.router.History.Excludes(f.ID, line)
	}
	if len(r.rules.ExcludeTypes) == 0 {
		return false
	}
	s := transcript.Scan(line)
	return s.Shape == transcript.Object && r.rules.ExcludeTypes[string(s.Type)]
}

func (r verifyRules) Forget(id tail.FileID) { r.d.forgottenAtServer(uint64(id)) }

// verifyAttachments adapts the daemon to verify.Attachments.
type verifyAttachments struct{ d *Daemon }

func (a verifyAttachments) OnDisk(root *os.Root, f tail.File,
	to *state.Routing) ([]projection.Attachment, int, error) {
	return a.d.attachments.OnDisk(root, f, to)
}

func (a verifyAttachments) Deliver(ctx context.Context, id tail.FileID) error {
	return a.d.deliverAttachments(ctx, id)
}
