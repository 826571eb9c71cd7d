package show

import (
	"context"
	"errors"
	"io"
	"testing"
)

// steps answers one number after the other, and the last one for ever.
type steps []int64

func (s *steps) next(context.Context) (left, all int64, err error) {
	left = (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	if left < 0 {
		return 0, 0, errors.New("no such page")
	}
	return left, 10, nil
}

// The index is waited for as long as it gets on. A server that does not say how far it is, is not waited for.
func TestAwaitIndex(t *testing.T) {
	a := &App{Stderr: io.Discard}
	for _, c := range []struct {
		steps   steps
		percent int64
		ok      bool
	}{{steps{0}, 100, true}, {steps{7, 3, 0}, 100, true}, {steps{-1}, 0, false}, {steps{5, -1}, 50, true}} {
		if percent, ok := a.AwaitIndex(t.Context(), c.steps.next); percent != c.percent || ok != c.ok {
			t.Errorf("%v: %d %v, want %d %v", c.steps, percent, ok, c.percent, c.ok)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if percent, ok := a.AwaitIndex(ended, (&steps{4}).next); percent != 60 || !ok {
		t.Errorf("somebody who does not want to wait: %d %v", percent, ok)
	}
}
