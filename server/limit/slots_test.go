package limit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/wire"
)

// TestSlotsPerUser: one user never has them all, and gives back what it had.
func TestSlotsPerUser(t *testing.T) {
	s := NewSlots(6, 0)
	var held []func()
	for _, user := range []int64{1, 1, 1, 10, 11, 12} {
		if len(held) == 3 {
			_, err := s.Acquire(t.Context(), 1, 1, time.Nanosecond)
			if no, ok := errors.AsType[*wire.RefusalError](err); !ok || no.Status != 503 || s.Busy() != 3 {
				t.Errorf("a fourth with the same key: %v", err)
			}
		}
		release, err := s.Acquire(t.Context(), user, 1, time.Hour)
		kit.Must(t, err)
		held = append(held, release)
	}
	_, err := s.Acquire(t.Context(), 20, 1, time.Nanosecond)
	if no, ok := errors.AsType[*wire.RefusalError](err); !ok || no.Status != 503 || s.Busy() != 6 {
		t.Errorf("with another key when all are taken: %v, %d", err, s.Busy())
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Acquire(gone, 20, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	for _, release := range held {
		release()
	}
	if s.Busy() != 0 || len(s.users) != 0 {
		t.Errorf("%d are still taken, %d keys remembered", s.Busy(), len(s.users))
	}
}
