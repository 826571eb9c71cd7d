package lines

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// ErrBusy says that another worker has a stream at the moment. It is packed at the next pass.
var ErrBusy = errors.New("another worker has the stream")

// Sealer goes through all generations with hot lines. It remembers those that it could not make smaller.
type Sealer struct {
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
func NewSealer(l *Lines) *Sealer { return &Sealer{lines: l} }

// Seal implements server.Sealer. seal is Lines.Seal in a transaction, or fails with ErrBusy. reader reads what is to
// do.
func (s *Sealer) Seal(ctx context.Context, reader sqlstore.Dialect, before time.Time,
	seal func(at Place, all bool) (made int, more bool, err error)) (blocks int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[Place]look{}
	var at Place
	for {
		h, ok, err := s.lines.NextHot(ctx, reader, at)
		if err != nil || !ok {
			s.seen = seen
			return blocks, err
		}
		at = h.Place
		now := look{h.Version, h.Last < sqlstore.Micros(before)}
		if was, ok := s.seen[at]; ok && was.version == now.version && (was.all || !now.all) {
			seen[at] = was
			continue
		}
		n, err := s.one(ctx, reader, at, now.all, seal)
		blocks += n
		if errors.Is(err, ErrBusy) {
			continue // not seen: what is left of it would stay as it is until its next line
		}
		if err != nil {
			return blocks, err
		}
		seen[at] = now
	}
}

func (s *Sealer) one(ctx context.Context, reader sqlstore.Dialect, at Place, all bool,
	seal func(at Place, all bool) (made int, more bool, err error)) (blocks int64, err error) {
	if !all {
		size, err := s.lines.Size(ctx, reader, at)
		if err != nil || size < blockSize {
			return 0, err
		}
	}
	for more := true; more; {
		var made int
		if made, more, err = seal(at, all); err != nil {
			return blocks, err
		}
		blocks += int64(made)
		if err := s.lines.step("committed blocks"); err != nil {
			return blocks, err
		}
	}
	return blocks, nil
}
