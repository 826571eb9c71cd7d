package server

import (
	"context"
	"errors"
	"fmt"
)

// DamagedError names lines that are stored and can't be read: their bytes are not those that were written. It is an
// ErrDamaged.
type DamagedError struct {
	Stream, Epoch int64
	Span          Span
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("lines %d to %d of generation %d are damaged: restore a backup, or run "+
		"`ccship verify --deep --repair` where they were written", e.Span.From+1, e.Span.To, e.Span.Generation)
}

// Is makes a DamagedError an ErrDamaged.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// Readable is Lines of a snapshot without the lines that are damaged. It calls damaged with each stretch of them, if
// that is not nil.
func Readable(ctx context.Context, snap Snapshot, s Span, yield func(Line) error, damaged func(*DamagedError)) error {
	for {
		err := snap.Lines(ctx, s, yield)
		d, ok := errors.AsType[*DamagedError](err)
		if !ok {
			return err
		}
		if damaged != nil {
			damaged(d)
		}
		s.From = d.Span.To
	}
}
