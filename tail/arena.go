package tail

// keepArena is the largest block kept for the next job; larger ones were for a long line and are dropped.
const keepArena = 4 << 20

// arena is the memory of one job: everything handed to the sink lives here until it is durable.
type arena struct {
	block   []byte
	used    int
	turn    int // size of a usual block
	scratch []byte
	prior   [AnchorSize]byte
}

// scratchSize is enough for the bytes between a Mark and a cursor, and for streaming.
const scratchSize = 256 << 10

func newArena(turn int64) *arena {
	return &arena{turn: int(turn), scratch: make([]byte, scratchSize)}
}

// take returns n bytes that stay valid until reset.
func (a *arena) take(n int64) []byte {
	if int64(len(a.block)-a.used) < n {
		// Slices of the old block stay valid: they keep it alive.
		a.block, a.used = make([]byte, a.size(n)), 0
	}
	b := a.block[a.used : a.used+int(n) : a.used+int(n)]
	a.used += int(n)
	return b
}

// size is the size of a new block for n bytes: for a job of a few small files what they need, for an import a whole
// turn at once.
func (a *arena) size(n int64) int64 {
	switch {
	case n >= int64(a.turn)/2:
		return max(n, int64(a.turn))
	case len(a.block) == 0:
		return max(n, min(64<<10, int64(a.turn)))
	}
	return max(n, int64(a.turn))
}

// unread returns the last n bytes taken.
func (a *arena) unread(n int64) { a.used -= int(n) }

// reset releases everything taken.
func (a *arena) reset() {
	a.used = 0
	if len(a.block) > keepArena {
		a.block = nil
	}
	if len(a.scratch) > keepArena {
		a.scratch = make([]byte, scratchSize)
	}
}

// room returns n bytes of scratch memory, valid until the next call.
func (a *arena) room(n int64) []byte {
	if int64(len(a.scratch)) < n {
		a.scratch = make([]byte, n)
	}
	return a.scratch[:n]
}
