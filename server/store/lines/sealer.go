package lines

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// errBusy says that another worker has a stream at the moment, or that it is gone. It is packed at the next pass.
var errBusy = errors.New("another worker has the stream")

// Sealer goes through all generations with hot lines. It remembers those that it could not make smaller.
type Sealer struct {
	db    sqlstore.Writer
	lines *Lines
	mu    sync.Mutex
	seen  map[Place]look // guarded by mu
}

// look is a generation as it was left.
type look struct {
	version int64 // of the stream
	all     bool  // even what does not fill a block was packed
}

// NewSealer returns a sealer that has seen nothing.
func NewSealer(db sqlstore.DB, l *Lines) *Sealer {
	return &Sealer{db: sqlstore.Writer{DB: db, How: sqlstore.Lazy | sqlstore.Erase | sqlstore.Patient}, lines: l}
}

// Seal implements server.Sealer. A stream that is being written, or packed by another server, is left for later. What
// fails for one stream ends nothing for the others.
func (s *Sealer) Seal(ctx context.Context, before time.Time) (blocks int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[Place]look{}
	var at Place
	var failed failures
	for {
		h, ok, err := s.lines.NextHot(ctx, s.db, at)
		if err != nil || !ok {
			s.seen = seen
			return blocks, failed.with(err)
		}
		at = h.Place
		now := look{h.Version, h.Last < sqlstore.Micros(before)}
		if was, ok := s.seen[at]; ok && was.version == now.version && (was.all || !now.all) {
			seen[at] = was
			continue
		}
		n, err := s.one(ctx, at, now.all)
		blocks += n
		if errors.Is(err, errBusy) {
			continue // not seen: what is left of it would stay as it is until its next line
		}
		if err != nil {
			failed.add(fmt.Errorf("pack stream %d: %w", at.Stream, err))
			continue
		}
		seen[at] = now
	}
}

func (s *Sealer) one(ctx context.Context, at Place, all bool) (blocks int64, err error) {
	if !all {
		size, err := s.lines.Size(ctx, s.db, at)
		if err != nil || size < blockSize {
			return 0, err
		}
	}
	for more := true; more; {
		var made int
		if made, more, err = s.seal(ctx, at, all); err != nil {
			return blocks, err
		}
		blocks += int64(made)
		if err := s.lines.step("committed blocks"); err != nil {
			return blocks, err
		}
	}
	return blocks, nil
}

// seal packs some lines of a generation in a transaction.
func (s *Sealer) seal(ctx context.Context, at Place, all bool) (made int, more bool, err error) {
	err = s.db.Write(ctx, func(d sqlstore.Dialect) error {
		made, more = 0, false
		free := false
		err := d.SkipLocked(ctx, `SELECT 1 FROM streams WHERE owner = ? AND id = ?`, []any{at.Owner, at.Stream},
			func(sqlstore.Scanner) error { free = true; return nil })
		if err == nil && !free {
			err = errBusy
		}
		if err != nil {
			return err
		}
		made, more, err = s.lines.Seal(ctx, d, at, all)
		return err
	})
	return made, more, err
}
