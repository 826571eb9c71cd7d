package daemon

import (
	"context"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
)

// owner passes on what servers answer to the packages that act on it.
type owner struct{ d *Daemon }

// Announced delivers files again that a server took as a plain one.
func (o owner) Announced(dest string) { o.d.extensionAnnounced(dest) }

// Forgotten notes that a server stores nothing of a stream any more.
func (o owner) Forgotten(stream uint64) { o.d.forgetter.AtServer(stream) }

// LinkRequests asks a server for its pending link requests.
func (o owner) LinkRequests(dest string) { o.d.linkRequests.Announce(dest) }

// OutOfStep starts a comparison of what a server stores with what is here.
func (o owner) OutOfStep(dest string, why protocol.Refusal) { o.d.reconciler.OutOfStep(dest, why) }

// OpenBlob opens a file to be sent, masked for its server, unless the file belongs to ccship by now.
func (o owner) OpenBlob(dest, cwd string, ref *outbox.BlobRef) (outbox.Content, error) {
	return o.d.guard.Open(ref.Root, ref.Path, o.d.masking.For(dest, cwd).ReaderAt)
}

// ConfigInForce reports whether the configuration in force is the one on disk.
func (o owner) ConfigInForce() bool {
	return o.d.badConfig.Load() == nil && config.Stamp(o.d.conf.Load().Path) == *o.d.lastRead.Load()
}

// TrustsProject reports whether lines of the project in a folder go to the server that the project itself names.
func (o owner) TrustsProject(dir string) bool {
	return project.Trusted(dir, o.d.router.Rules().TrustedProjects)
}

// Accepts queues again what was withheld from a server that now accepts further kinds of rows.
func (o owner) Accepts(dest string, kinds outbox.Kinds, again bool) error {
	ctx, d := context.Background(), o.d
	if kinds.Has(outbox.Blob) {
		if again {
			if err := d.projections.Attachments.Forget(ctx, dest, 0); err != nil {
				return err
			}
		}
		d.attachments.ListAll()
	}
	if kinds.Has(outbox.Checkpoints) && again {
		if err := d.storedCheckpoints.Resend(ctx, dest); err != nil {
			return err
		}
	}
	if kinds.Has(outbox.Documents) && again {
		return d.documents.Resend(ctx, dest)
	}
	return nil
}
