package server

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestSlotsPerUser: one user never has them all, and gives back what it had.
func TestSlotsPerUser(t *testing.T) {
	s := newSlots(6)
	for range 3 {
		if err := s.take(t.Context(), 1, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	no, ok := errors.AsType[*refusal](s.take(t.Context(), 1, time.Nanosecond))
	if !ok || no.status != 503 || s.busy() != 3 {
		t.Errorf("a fourth with the same key: %v", no)
	}
	for key := range int64(3) {
		if err := s.take(t.Context(), 10+key, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if s.busy() != 6 {
		t.Errorf("%d are taken", s.busy())
	}
	if no, ok := errors.AsType[*refusal](s.take(t.Context(), 20, time.Nanosecond)); !ok || no.status != 503 {
		t.Errorf("with another key when all are taken: %v", no)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := s.take(gone, 20, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	for range 3 {
		s.give(1)
	}
	for key := range int64(3) {
		s.give(10 + key)
	}
	if s.busy() != 0 || len(s.users) != 0 {
		t.Errorf("%d are still taken, %d keys remembered", s.busy(), len(s.users))
	}
}
