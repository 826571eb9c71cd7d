package tail

import (
	"sync"
	"time"
)

const (
	// coarseTick is the coarsest clock of a file system: FAT dates by two seconds.
	coarseTick = 2 * time.Second
	// fineTick is more than the clocks of the others take: the kernel's timer ticks at least a hundred times a second.
	fineTick = 100 * time.Millisecond
)

// settleTime returns how old a change time must be before an unchanged one proves unchanged bytes: another write within
// the same tick of the clock would leave it as it is. A time with a fraction of a millisecond comes from a fine clock.
func (s Stat) settleTime() time.Duration {
	if ownChangeTime && s.ChangeTime%int64(time.Millisecond) != 0 {
		return fineTick
	}
	return coarseTick
}

// fileClocks are the clocks of file systems, as far as change times tell of them. That of a file server may be behind
// this machine's: what changed there a moment ago seems old. Safe for concurrent use.
type fileClocks struct {
	mu    sync.Mutex
	began map[uint64]int64 // by device: what its clock showed at least when the Tailer was made
}

// ago returns how long ago one of a stat's times is at least, by the clock that dated it: from the newest change time
// seen on its device, and never more than by this machine's clock.
func (t *Tailer) ago(s Stat, at int64) time.Duration {
	now, c := int64(t.now()), &t.clocks
	c.mu.Lock()
	began, known := c.began[s.Device]
	if !known || began < s.ChangeTime-now {
		began = s.ChangeTime - now
		if c.began == nil {
			c.began = map[uint64]int64{}
		}
		c.began[s.Device] = began
	}
	c.mu.Unlock()
	return min(time.Duration(began+now-at), t.wall().Sub(time.Unix(0, at)))
}

// age returns how long ago a stat changed at least.
func (t *Tailer) age(s Stat) time.Duration { return t.ago(s, s.ChangeTime) }

// since returns when, in the Tailer's time, one of the times of a stat was.
func (t *Tailer) since(s Stat, at int64) time.Duration { return t.now() - max(0, t.ago(s, at)) }
