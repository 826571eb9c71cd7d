package daemon

import (
	"github.com/ccship/ccship/daemon/document"
	"github.com/ccship/ccship/daemon/proof"
)

// settings gives other packages the configuration in force.
type settings struct{ d *Daemon }

func (s settings) Roots() []string { return s.d.conf.Load().Roots }
func (s settings) Locale() string  { return s.d.conf.Load().Locale }
func (s settings) BlobCap() int64  { return s.d.conf.Load().BlobCap }

// wireAttachments makes the collector of attachments. Call it after the tailer is made.
func (d *Daemon) wireAttachments() {
	d.attachments = document.NewAttachments(document.AttachmentDeps{
		Projections: d.projections, Files: d.tailer, Router: d.router, Servers: d.servers, Settings: settings{d},
		Masking: d.masking, Log: d.log,
	})
}

// wireRequests makes the parts that work only on request. Call it after every part that stores something of sessions.
func (d *Daemon) wireRequests() {
	d.syncer = &proof.Syncer{
		State: d.db, Files: d.tailer, Router: d.router, Servers: d.servers, Pause: d.pause, Reconciler: d.reconciler,
		Derived: d.derive, Documents: d.documents, Attachments: d.attachments, Log: d.log,
	}
	d.forgetter = &proof.Forgetter{
		State: d.db, Files: d.tailer, Router: d.router, Servers: d.servers, Derived: d.derive, Documents: d.documents,
		Inbox: d.inbox, Rewrites: d.rewrites, Log: d.log,
	}
	d.remasker = &proof.Remasker{Servers: d.servers, Masking: d.masking, Machine: d.origin.Machine}
	d.wireComparer()
}

// stateListener passes on what the state reports.
type stateListener struct{ d *Daemon }

// RowsQueued implements state.Listener.
func (l stateListener) RowsQueued(dest string) { l.d.servers.Wake(dest) }

// CapacityReturned implements state.Listener.
func (l stateListener) CapacityReturned() { l.d.tailer.Wake() }
