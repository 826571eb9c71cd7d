package daemon

import (
	"context"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/document"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// wireComparer makes the parts that compare on request. Call it after the syncer is made.
func (d *Daemon) wireComparer() {
	d.comparer = &proof.Service{
		Deps: func() proof.Deps {
			return proof.Deps{
				State: d.db, Files: d.tailer, Servers: d.servers, Rules: verifyRules{d, d.router.Rules()},
				Attachments: verifyAttachments{d.attachments, d}, Masking: d.masking, Origin: d.origin, LineCap: d.cfg.LineCap,
				Former: d.name.Former(),
			}
		},
		Syncer: d.syncer,
		Session: func(name string) (string, error) {
			s, err := d.router.Lookup(name, d.tailer)
			return s.Name, err
		},
		Repairer: d.reconciler,
	}
}

// Verify compares the disk with the servers. It uses much memory while it runs.
func (a socket) Verify(ctx context.Context, req control.VerifyRequest,
	progress func(control.VerifyProgress)) (control.VerifyReport, error) {
	defer a.memoryUsed.Store(true)
	report, err := a.comparer.Verify(ctx, req, progress)
	if err == nil && req.Session == "" {
		var clear []string
		for _, t := range report.Transcripts {
			if t.Clear > 0 {
				clear = append(clear, t.Path)
			}
		}
		a.lookElsewhere()
		report.NotReadFiles = a.notRead(a.tailer.Stats())
		err = a.clear.note(ctx, clear, true)
	}
	return report, err
}

// Resend sends lines again that a server lacks or has differently.
func (a socket) Resend(ctx context.Context, req control.ResendRequest) (control.ResendResult, error) {
	return a.comparer.Resend(ctx, req)
}

// verifyRules adapts the daemon to proof.Rules.
type verifyRules struct {
	d     *Daemon
	rules *route.Rules
}

func (r verifyRules) Excluded(facts map[tail.FileID]state.Routing) map[tail.FileID]string {
	excluded := r.d.router.ExcludedOnDisk(r.d.tailer)
	for id, out := range r.d.router.ExcludedNow(facts) {
		excluded[id] = out.Why
	}
	return excluded
}

func (r verifyRules) LeavesOut(f *tail.File, line []byte) bool {
	if f.Kind == tail.History {
		return r.d.router.History.Excludes(f, line)
	}
	if len(r.rules.ExcludeTypes) == 0 {
		return false
	}
	l := transcript.Scan(line)
	return r.rules.LeavesOut(&l)
}

func (r verifyRules) Forget(id tail.FileID) { r.d.forgetter.AtServer(uint64(id)) }

// verifyAttachments adapts the daemon to proof.Attachments.
type verifyAttachments struct {
	*document.Collector
	d *Daemon
}

func (a verifyAttachments) Deliver(ctx context.Context, id tail.FileID) error {
	if err := a.QueueOf(ctx, id); err != nil {
		return err
	}
	return a.d.syncer.Drained(ctx, a.d.db.Outbox.LastSeq())
}

func (a verifyAttachments) Requeue(ctx context.Context, dest string, id tail.FileID) error {
	return a.d.projections.Attachments.Forget(ctx, dest, id)
}
