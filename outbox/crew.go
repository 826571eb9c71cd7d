package outbox

import "sync"

// crew runs jobs in goroutines that stay until the end: a new goroutine has a small stack, and a request makes it grow
// several times, which costs about a twelfth of what a short one takes in all. One goroutine hands out jobs.
type crew struct {
	jobs chan func()
	most int // jobs at once
	size int
	wg   sync.WaitGroup
}

func newCrew(most int) crew { return crew{jobs: make(chan func()), most: most} }

// do has a job run. Of the most jobs that there may be at once, each must end soon after its result was received.
func (c *crew) do(job func()) {
	select {
	case c.jobs <- job:
		return
	default: // none has nothing to do, or those are about to say so
	}
	if c.size == c.most {
		c.jobs <- job
		return
	}
	c.size++
	c.wg.Go(func() {
		job()
		for job := range c.jobs {
			job()
		}
	})
}

// end waits for all jobs, and ends the goroutines.
func (c *crew) end() {
	close(c.jobs)
	c.wg.Wait()
}
