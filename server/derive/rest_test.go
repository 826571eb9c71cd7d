package derive_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
)

// TestRest: lines that come while their stream rests are derived soon after, though nothing comes after them.
func TestRest(t *testing.T) {
	s := newShelf(t)
	for i := range 150 { // so many that some workers lease as many as make streams rest
		s.put(fmt.Sprint("s", i), 0, 0, prompt(0, "one"))
	}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rests := ""
		see := func(d *server.Derivation) {
			mu.Lock()
			defer mu.Unlock()
			if d.Rest > 0 {
				rests = d.Task.SessionID
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- (&derive.Deriver{Store: watched{s.Store, see}}).Run(ctx) }()
		settle := func() {
			for {
				n, err := s.Lag(ctx)
				kit.Must(t, err)
				if n == 0 {
					return
				}
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // inside testing/synctest: the time is not real
			}
		}
		settle()
		mu.Lock()
		last := rests
		mu.Unlock()
		if last == "" {
			t.Fatal("no stream rests")
		}
		began := time.Now()
		s.put(last, 0, 1, prompt(1, "two"))
		settle()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("derived after %s", took)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
