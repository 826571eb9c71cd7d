package tail

import "time"

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

// age returns how long ago the change time is.
func (s Stat) age() time.Duration { return time.Since(time.Unix(0, s.ChangeTime)) }
