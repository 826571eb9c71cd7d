package derive

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// A hook waits for its tool call only in a session whose next answer may exceed a mark, and not for long.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollow()
		waits := func(ctx context.Context, session, tool string) time.Duration {
			began := time.Now()
			f.await(ctx, session, tool)
			return time.Since(began)
		}
		f.context("near", 100_200, 167_000)
		f.context("far", 99_000, 167_000)
		f.context("unknown", 99_000, 0)
		f.read("near", []string{"t1", "t2"})
		f.read("far", []string{"t1"})
		for _, c := range []struct{ session, tool string }{{"near", "t1"}, {"near", "t2"}, {"far", "t9"}, {"unknown", "t9"}, {"never seen", "t9"}} {
			took := waits(t.Context(), c.session, c.tool)
			kit.Check(t, took == 0, "%v waits for %s", c, took)
		}
		kit.Equal(t, "it gives up after", waits(t.Context(), "near", "t9"), followTime)
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		kit.Equal(t, "a hook that is gone waits for", waits(gone, "near", "t9"), time.Millisecond)
		for _, wake := range []func(){
			func() { f.read("near", []string{"t8", "t9"}) }, func() { f.context("near", 9000, 167_000) },
		} {
			f.context("near", 160_000, 167_000)
			f.sessions["near"].tools = nil
			time.AfterFunc(100*time.Millisecond, wake)
			go f.await(t.Context(), "near", "t9")
			kit.Equal(t, "it waits for", waits(t.Context(), "near", "t9"), 100*time.Millisecond)
		}
		synctest.Wait()
		f.context("near", 160_000, 167_000)
		for range 3 * toolsFollowed {
			f.read("near", []string{"t"})
		}
		s := f.sessions["near"]
		kit.Check(t, len(s.tools) == toolsFollowed && len(s.waiting) == 0, "%d tools are remembered, %d waited for", len(s.tools), len(s.waiting))
		f.forget("near")
		kit.Check(t, len(f.sessions) == 0, "%d sessions are left", len(f.sessions))
	})
}

// TestFollowIsBounded: sessions that end nearly full do not pile up; who waits for a dropped one goes on.
func TestFollowIsBounded(t *testing.T) {
	f := newFollow()
	f.context("first", 90, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.await(t.Context(), "first", "tool")
	}()
	for i := range 4 * sessionsFollowed {
		f.context(strconv.Itoa(i), 90, 100)
	}
	<-done
	kit.Equal(t, "sessions are followed", len(f.sessions), sessionsFollowed)
}
