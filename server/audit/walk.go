package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
)

// pageSize is how many streams are listed at once.
const pageSize = 1000

// Epochs calls epoch with a snapshot of each epoch of each stream, and read after the last one of a stream. The
// snapshot is closed when epoch returns. A stream that is forgotten meanwhile is passed over; what is stored
// meanwhile may be left out. Both are called on the caller's goroutine. The first error ends the walk.
func Epochs(ctx context.Context, store server.Catalog, epoch func(server.Snapshot) error, read func()) error {
	for page := (server.Page{Limit: pageSize}); ; {
		list, err := store.Sessions(ctx, page)
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		for _, x := range list.List {
			if err := stream(ctx, store, x, epoch); err != nil {
				return fmt.Errorf("read session %q: %w", x.SessionID, err)
			}
			read()
		}
		if list.Next == "" {
			return nil
		}
		page.After = list.Next
	}
}

// stream walks the epochs of one stream.
func stream(ctx context.Context, store server.Catalog, x server.Session, epoch func(server.Snapshot) error) error {
	ref := server.Ref{Stream: x.ID}
	var epochs []server.Epoch
	err := open(ctx, store, ref, func(snap server.Snapshot) error {
		epochs = snap.Epochs()
		return nil
	})
	for _, e := range epochs {
		if err != nil {
			break
		}
		ref.Epoch = e.Name
		err = open(ctx, store, ref, epoch)
	}
	if errors.Is(err, server.ErrNotFound) {
		return nil
	}
	return err
}

func open(ctx context.Context, store server.Catalog, ref server.Ref, fn func(server.Snapshot) error) error {
	snap, err := store.Open(ctx, ref)
	if err != nil {
		return err
	}
	return errors.Join(fn(snap), snap.Close())
}
