package limit

import (
	"errors"
	"testing"
	"time"

	"github.com/ccship/ccship/server/wire"
)

// TestRates: a user has so many requests a minute, others are not concerned, and memory is given back.
func TestRates(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := NewRates(60)
	for i := range 60 {
		if err := r.Take(1, now); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	no, ok := errors.AsType[*wire.RefusalError](r.Take(1, now))
	if !ok || no.Status != 429 {
		t.Fatalf("one too many: %v", no)
	}
	if err := r.Take(2, now); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := r.Take(1, now.Add(time.Second)); err != nil {
		t.Errorf("a second later: %v", err)
	}
	if err := r.Take(3, now.Add(time.Hour)); err != nil || len(r.users) != 1 {
		t.Errorf("%v; %d users are remembered", err, len(r.users))
	}
	if err := NewRates(0).Take(1, now); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
