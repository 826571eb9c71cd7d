package tail

// keepArena is the largest block kept for the next job; larger ones were for a long line and are dropped.
const keepArena = 4 << 20

// arena is the memory of one job: everything handed to the sink lives here until it is durable.
type arena struct {
	block   []byte
	used    int
	turn    int // size of a usual block
	Scratch []byte
	Prior   []byte // space for the bytes before a cursor
}

// scratchSize is enough for the bytes between a Mark and a cursor, and for streaming.
const scratchSize = 256 << 10

// newArena makes the memory of jobs that read turn bytes at once, with space for prior bytes before a cursor.
func newArena(turn int64, prior int) *arena {
	return &arena{turn: int(turn), Scratch: make([]byte, scratchSize), Prior: make([]byte, prior)}
}

// Take returns n bytes that stay valid until reset.
func (a *arena) Take(n int64) []byte {
	if int64(len(a.block)-a.used) < n {
		// Slices of the old block stay valid: they keep it alive.
		a.block, a.used = make([]byte, a.size(n)), 0
	}
	b := a.block[a.used : a.used+int(n) : a.used+int(n)]
	a.used += int(n)
	return b
}

// size returns the size of a new block for n bytes: for a job of a few small files what they need, for an import a
// whole turn at once.
func (a *arena) size(n int64) int64 {
	if n < int64(a.turn)/2 && len(a.block) == 0 {
		return max(n, min(64<<10, int64(a.turn)))
	}
	return max(n, int64(a.turn))
}

// Unread returns the last n bytes taken.
func (a *arena) Unread(n int64) { a.used -= int(n) }

// Reset releases everything taken.
func (a *arena) Reset() {
	a.used = 0
	if len(a.block) > keepArena {
		a.block = nil
	}
	if len(a.Scratch) > keepArena {
		a.Scratch = make([]byte, scratchSize)
	}
}

// Bytes returns n bytes of scratch memory, valid until the next call.
func (a *arena) Bytes(n int64) []byte {
	if int64(len(a.Scratch)) < n {
		a.Scratch = make([]byte, n)
	}
	return a.Scratch[:n]
}
