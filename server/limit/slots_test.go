package limit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ccship/ccship/server/wire"
)

// TestSlotsPerUser: one user never has them all, and gives back what it had.
func TestSlotsPerUser(t *testing.T) {
	s := NewSlots(6)
	for range 3 {
		if err := s.Acquire(t.Context(), 1, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	no, ok := errors.AsType[*wire.RefusalError](s.Acquire(t.Context(), 1, time.Nanosecond))
	if !ok || no.Status != 503 || s.Busy() != 3 {
		t.Errorf("a fourth with the same key: %v", no)
	}
	for key := range int64(3) {
		if err := s.Acquire(t.Context(), 10+key, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if s.Busy() != 6 {
		t.Errorf("%d are taken", s.Busy())
	}
	if no, ok := errors.AsType[*wire.RefusalError](s.Acquire(t.Context(), 20, time.Nanosecond)); !ok || no.Status != 503 {
		t.Errorf("with another key when all are taken: %v", no)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := s.Acquire(gone, 20, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	for range 3 {
		s.Release(1)
	}
	for key := range int64(3) {
		s.Release(10 + key)
	}
	if s.Busy() != 0 || len(s.users) != 0 {
		t.Errorf("%d are still taken, %d keys remembered", s.Busy(), len(s.users))
	}
}
