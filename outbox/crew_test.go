package outbox

import (
	"testing"
	"testing/synctest"
)

// TestCrew: as many jobs run at once as there may be, and no more; the goroutines of those that have ended take the next;
// end waits for the last.
func TestCrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		c := newCrew(most)
		release, ran := make(chan struct{}), make(chan int, 100)
		for n := range most {
			c.do(func() { <-release; ran <- n })
		}
		go func() { c.do(func() { ran <- most }) }()
		synctest.Wait()
		if len(ran) != 0 {
			t.Fatal("more jobs run at once than may")
		}
		close(release)
		synctest.Wait()
		for n := range 50 {
			c.do(func() { ran <- n })
			synctest.Wait()
		}
		if len(ran) != most+1+50 || c.size != most {
			t.Errorf("%d jobs have run, in %d goroutines", len(ran), c.size)
		}
		ended := false
		c.do(func() { ended = true })
		if c.end(); !ended {
			t.Error("end did not wait for the last job")
		}
	})
}
