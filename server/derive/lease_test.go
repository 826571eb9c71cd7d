package derive_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
)

// taken is a store of which others have leased what lags.
type taken struct {
	derive.Derivable
	lag    int64
	looked atomic.Int64
}

func (s *taken) Changes(context.Context) (<-chan server.Change, error) {
	return make(chan server.Change), nil
}
func (s *taken) Renew(context.Context, int64) error { return nil }
func (s *taken) Lag(context.Context) (int64, error) { return s.lag, nil }

func (s *taken) Lagging(context.Context, int) ([]server.Task, error) {
	s.looked.Add(1)
	return nil, nil
}

// TestLeaseOfOneThatIsGone: while others have leased what lags, a deriver looks often enough to take it over soon after
// the lease has ended, though nothing comes meanwhile. It rests when nothing lags.
func TestLeaseOfOneThatIsGone(t *testing.T) {
	for lag, want := range map[int64][2]int64{0: {1, 2}, 1: {10, 20}} {
		synctest.Test(t, func(t *testing.T) {
			s := &taken{lag: lag}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := (&derive.Deriver{Store: s, Workers: 1}).Run(ctx); err != nil {
				t.Error(err)
			}
			if n := s.looked.Load(); n < want[0] || n > want[1] {
				t.Errorf("while %d lag it looked %d times in a minute, want %d to %d", lag, n, want[0], want[1])
			}
		})
	}
}
