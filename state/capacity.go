package state

import (
	"sync"
	"time"

	"github.com/ccship/ccship/state/kv"
)

const (
	diskEvery = time.Second      // the system is asked for the free disk space at most this often
	takenLag  = 10 * time.Second // rows that left within this time show that the server keeps up
)

// capacity caches the last answers. Each limit is a latch: once reached, it holds until there is some capacity to
// spare. Otherwise one freed row would let one file be read, and the answer would change with every row.
type capacity struct {
	mu       sync.Mutex // a leaf, except for index.mu
	limits   Limits
	asked    time.Time // when the disk was asked last
	free     uint64
	headRoom uint64 // bytes that must stay free
	unknown  bool   // the disk did not answer; then it is no reason to stop

	low       bool    // less free than headRoom, and not yet well above it
	full      [2]bool // by class: the cap is reached, and not yet well below it
	readAhead bool    // an import has read far enough ahead
	blocked   [2]bool // by class: the last answer was no
}

// Limits are the Options that may change while the state is open.
type Limits struct{ Cap, HeadRoom, CompactAbove int64 }

// SetLimits replaces the limits that Open was given; 0 is the default.
func (db *DB) SetLimits(l Limits) {
	l.Cap = Options{Cap: l.Cap}.withDefaults().Cap
	db.capacity.mu.Lock()
	db.capacity.limits, db.capacity.asked = l, time.Time{} // so that the disk is asked again
	db.capacity.mu.Unlock()
	db.SetCompactAbove(l.CompactAbove)
	db.recheckCapacity()
	db.Wake()
}

func (db *DB) limits() Limits {
	db.capacity.mu.Lock()
	defer db.capacity.mu.Unlock()
	return db.capacity.limits
}

// Classes of files. An import gets less, so that yesterday's lines do not keep out what is written now.
const (
	classImport = iota
	classLive
)

// HasCapacity reports whether more may be queued. It is false when the rows in outbox and dead letters reach the cap
// (an import stops at 90 %) or the disk has less free space than HeadRoom. An import also waits while more than
// ReadAhead is queued and the server takes rows. Listener.CapacityReturned is called when a no has become a yes.
func (db *DB) HasCapacity(live bool) bool {
	class := classImport
	if live {
		class = classLive
	}
	stored, queued, taken := db.index.stored()
	c := &db.capacity
	c.mu.Lock()
	defer c.mu.Unlock()
	db.measure(stored, queued, taken)
	c.blocked[class] = !c.open(class)
	if c.blocked[class] {
		db.Wake() // so that Run checks again in a second
	}
	return !c.blocked[class]
}

// recheckCapacity measures again, and calls Listener.CapacityReturned when a class that was refused has capacity.
func (db *DB) recheckCapacity() {
	stored, queued, taken := db.index.stored()
	c := &db.capacity
	c.mu.Lock()
	changed := false
	if c.blocked[classImport] || c.blocked[classLive] {
		db.measure(stored, queued, taken)
		for class, blocked := range c.blocked {
			if blocked && c.open(class) {
				c.blocked[class] = false
				changed = true
			}
		}
	}
	c.mu.Unlock()
	if changed && db.Listener != nil {
		db.Listener.CapacityReturned()
	}
}

// capacityBlocked reports whether a caller was refused and waits.
func (db *DB) capacityBlocked() bool {
	db.capacity.mu.Lock()
	defer db.capacity.mu.Unlock()
	return db.capacity.blocked[classImport] || db.capacity.blocked[classLive]
}

// capacityFull returns which limit is reached: "disk", "cap" or "". It ignores an import that only waits for the
// server, because a person can do nothing about that.
func (db *DB) capacityFull() string {
	stored, queued, taken := db.index.stored()
	c := &db.capacity
	c.mu.Lock()
	defer c.mu.Unlock()
	db.measure(stored, queued, taken)
	switch {
	case c.low:
		return "disk"
	case c.full[classImport] || c.full[classLive]:
		return "cap"
	}
	return ""
}

func (c *capacity) open(class int) bool {
	return !c.low && !c.full[class] && (class == classLive || !c.readAhead)
}

// measure brings the latches up to date. The caller holds capacity.mu.
func (db *DB) measure(stored, queued int64, taken time.Time) {
	c, now := &db.capacity, time.Now()
	limits := [2]int64{classImport: c.limits.Cap - c.limits.Cap/10, classLive: c.limits.Cap}
	for class, limit := range limits {
		c.full[class] = latch(c.full[class], stored >= limit, stored >= limit-limit/20)
	}
	c.readAhead = latch(c.readAhead, queued > db.opt.ReadAhead, queued > db.opt.ReadAhead/4*3) && now.Sub(taken) < takenLag
	if now.Sub(c.asked) >= diskEvery || c.asked.IsZero() {
		c.asked = now
		db.askDisk()
	}
	c.low = !c.unknown && latch(c.low, c.free < c.headRoom, c.free < c.headRoom+c.headRoom/20)
}

// latch turns on at reached, and stays on while near.
func latch(on, reached, near bool) bool { return reached || on && near }

// askDisk asks the system for the free bytes. The caller holds capacity.mu.
func (db *DB) askDisk() {
	c := &db.capacity
	free, total, err := db.FreeDisk()
	if unknown := err != nil; unknown != c.unknown {
		c.unknown = unknown
		if unknown {
			db.log.Warn("free disk space is not known", "path", db.opt.Path, "error", err)
		}
	}
	c.free, c.headRoom = free+uint64(db.spare()), headRoom(c.limits.HeadRoom, total)
}

// slack is how many bytes of empty pages do not count as free: every commit needs some.
const slack = 1 << 20

// spare returns how many bytes may be written without the file growing. The file never shrinks while it is open, so one
// that filled the disk and was then drained has its free space inside.
func (db *DB) spare() int64 { return max(0, db.Empty()-slack) }

// headRoom returns the bytes to keep free on a disk. The default is small: the disks of laptops are nearly full for
// months, and a daemon that stopped then would lose the lines that Claude Code deletes meanwhile.
func headRoom(configured int64, total uint64) uint64 {
	if configured > 0 {
		return uint64(configured)
	}
	return min(256<<20, total/50)
}

// DiskSpace returns how many bytes are free on the disk of a folder, and below how many of them reading stops, for the
// HeadRoom that Options would have; 0 is the default. Free pages inside the state file are not counted.
func DiskSpace(dir string, headRoomOption int64) (free, head uint64, err error) {
	free, total, err := kv.FreeDisk(dir)
	if err != nil {
		return 0, 0, err
	}
	return free, headRoom(headRoomOption, total), nil
}

// stored returns the bytes that the cap counts, those of the outbox alone, and when rows last left it.
func (x *index) stored() (all, queued int64, taken time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.total.stored + x.deadSize, x.total.stored, x.lastTaken
}
