package daemon

import (
	"context"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// servers shows rooms the destinations.
type servers struct{ *destinations }

// Protocol is what a server speaks; "" for one that nothing is sent to.
func (s servers) Protocol(dest string) string {
	if dr := s.get(dest); dr != nil {
		return dr.Health().Protocol
	}
	return ""
}

// Reader is a client of a server's reading API.
func (s servers) Reader(dest string) *remote.Client { return s.reader(dest) }

// Own is the user's own server; "" when none is set.
func (s servers) Own() string { return s.ownServer() }

// Takes answers whether a server is known to take a kind of row.
func (s servers) Takes(dest string, kind outbox.Kind) bool { return s.takes(dest, kind) }

// AnyTakes answers whether any server is known to take a kind of row.
func (s servers) AnyTakes(kind outbox.Kind) bool {
	for dest := range s.drainers() {
		if s.takes(dest, kind) {
			return true
		}
	}
	return false
}

// settings shows rooms the configuration in force.
type settings struct{ d *Daemon }

func (s settings) Roots() []string { return s.d.conf.Load().Roots }
func (s settings) Locale() string  { return s.d.conf.Load().Locale }
func (s settings) BlobCap() int64  { return s.d.conf.Load().BlobCap }

// deliverAttachments queues the attachments of a transcript, and returns when they have left the outbox.
func (d *Daemon) deliverAttachments(ctx context.Context, id tail.FileID) error {
	if err := d.attachments.QueueOf(ctx, id); err != nil {
		return err
	}
	return d.drained(ctx, d.db.LastSeq())
}
