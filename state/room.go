package state

import (
	"sync"
	"time"

	"github.com/ccship/ccship/state/kv"
)

const (
	diskEvery  = time.Second      // the disk is asked at most so often
	settledLag = 10 * time.Second // rows that left so recently show that the server keeps up
)

// room remembers the last answers, so that one that was no turns to yes only when there is something to spare.
type room struct {
	mu      sync.Mutex // a leaf, but for index.mu
	limits  Limits
	asked   time.Time // when the disk was
	free    uint64
	head    uint64 // bytes that must stay free
	unknown bool   // the disk did not answer: it does not stand in the way

	low   bool    // less free than head, and not yet well above it
	full  [2]bool // by class: the cap is reached, and not yet well below it
	ahead bool    // enough read ahead, for an import
	shut  [2]bool // by class: the last answer was no
}

// Limits are the Options that may change while the state is open; see there.
type Limits struct{ Cap, HeadRoom, CompactAbove int64 }

// SetLimits takes the place of what Open was told; 0 is the default.
func (db *DB) SetLimits(l Limits) {
	l.Cap = Options{Cap: l.Cap}.withDefaults().Cap
	db.room.mu.Lock()
	db.room.limits, db.room.asked = l, time.Time{} // so that the disk is asked anew
	db.room.mu.Unlock()
	db.file.SetCompactAbove(l.CompactAbove)
	db.roomCheck()
	db.file.Wake()
}

func (db *DB) limits() Limits {
	db.room.mu.Lock()
	defer db.room.mu.Unlock()
	return db.room.limits
}

// classes of files; import gets less room.
const (
	classImport = iota
	classLive
)

// Room says whether more may be put in: false when the rows in outbox and dead letters reach the cap (an import
// stops at 90 %) or the disk has less than the head-room. An import also waits while more than ReadAhead is queued
// and the server is taking it. RoomChanged is called when a no has become a yes.
func (db *DB) Room(live bool) bool {
	class := classImport
	if live {
		class = classLive
	}
	stored, queued, settled := db.index.stored()
	r := &db.room
	r.mu.Lock()
	defer r.mu.Unlock()
	db.look(stored, queued, settled)
	r.shut[class] = !r.open(class)
	if r.shut[class] {
		db.file.Wake() // so that Run looks again in a second
	}
	return !r.shut[class]
}

// roomCheck looks again, and tells RoomChanged when a class that was refused has room.
func (db *DB) roomCheck() {
	stored, queued, settled := db.index.stored()
	r := &db.room
	r.mu.Lock()
	changed := false
	if r.shut[classImport] || r.shut[classLive] {
		db.look(stored, queued, settled)
		for class, shut := range r.shut {
			if shut && r.open(class) {
				r.shut[class] = false
				changed = true
			}
		}
	}
	r.mu.Unlock()
	if changed && db.RoomChanged != nil {
		db.RoomChanged()
	}
}

// roomBlocked says whether someone was refused and waits.
func (db *DB) roomBlocked() bool {
	db.room.mu.Lock()
	defer db.room.mu.Unlock()
	return db.room.shut[classImport] || db.room.shut[classLive]
}

// roomFull says what stands in the way of live files, or of an import that can't be the server keeping up.
func (db *DB) roomFull() string {
	stored, queued, settled := db.index.stored()
	r := &db.room
	r.mu.Lock()
	defer r.mu.Unlock()
	db.look(stored, queued, settled)
	switch {
	case r.low:
		return "disk"
	case r.full[classImport] || r.full[classLive]:
		return "cap"
	}
	return ""
}

func (r *room) open(class int) bool {
	return !r.low && !r.full[class] && (class == classLive || !r.ahead)
}

// look brings the latches up to date. The caller holds room.mu.
func (db *DB) look(stored, queued int64, settled time.Time) {
	r, now := &db.room, time.Now()
	limits := [2]int64{classImport: r.limits.Cap - r.limits.Cap/10, classLive: r.limits.Cap}
	for class, limit := range limits {
		r.full[class] = latch(r.full[class], stored >= limit, stored >= limit-limit/20)
	}
	r.ahead = latch(r.ahead, queued > db.opt.ReadAhead, queued > db.opt.ReadAhead/4*3) && now.Sub(settled) < settledLag
	if now.Sub(r.asked) >= diskEvery || r.asked.IsZero() {
		r.asked = now
		db.askDisk()
	}
	r.low = !r.unknown && latch(r.low, r.free < r.head, r.free < r.head+r.head/20)
}

// latch is on at reached, and stays on while near.
func latch(on, reached, near bool) bool { return reached || on && near }

// askDisk asks for the free bytes. The caller holds room.mu.
func (db *DB) askDisk() {
	r := &db.room
	free, total, err := db.file.FreeDisk()
	if unknown := err != nil; unknown != r.unknown {
		r.unknown = unknown
		if unknown {
			db.log.Warn("free disk space is not known", "path", db.opt.Path, "error", err)
		}
	}
	r.free, r.head = free+uint64(db.spare()), headRoom(r.limits.HeadRoom, total)
}

// slack is how many bytes of empty pages do not count as room: every commit needs some.
const slack = 1 << 20

// spare is how many bytes may be written without the file growing. A file that filled the disk and was drained has
// its room inside.
func (db *DB) spare() int64 { return max(0, db.file.Empty()-slack) }

// headRoom answers the bytes to keep free on a disk. Little, when not told otherwise: the disks of laptops are nearly
// full for months, and a daemon that then stops to deliver would lose what it is there to keep.
func headRoom(configured int64, total uint64) uint64 {
	if configured > 0 {
		return uint64(configured)
	}
	return min(256<<20, total/50)
}

// DiskSpace answers how many bytes are free on the disk of a folder, and below how many of them reading stops, for the
// head-room that Options would be told; 0 is the default. Room inside the state file is not counted.
func DiskSpace(dir string, headRoomOption int64) (free, head uint64, err error) {
	free, total, err := kv.FreeDisk(dir)
	if err != nil {
		return 0, 0, err
	}
	return free, headRoom(headRoomOption, total), nil
}

// stored answers the bytes that the cap counts, those of the outbox alone, and when rows last left it.
func (x *index) stored() (all, queued int64, settled time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.total.stored + x.deadSize, x.total.stored, x.settled
}
