package kv

import "sync"

// bbolt holds the values that it is given until the transaction ends. In an import these are most of what is allocated,
// so their memory is used again.
const (
	roomPiece = 128 << 10
	roomMost  = roomPiece / 2 // a larger value has memory of its own
)

// pieces are those that no transaction has. The collector takes them when none is needed for a while.
var pieces = sync.Pool{New: func() any { return new([roomPiece]byte) }}

// room is the memory of one transaction's values.
type room struct {
	taken []*[roomPiece]byte
	used  int // bytes of the last one
}

func (r *room) take(n int) []byte {
	if n > roomMost {
		return make([]byte, 0, n)
	}
	if len(r.taken) == 0 || r.used+n > roomPiece {
		r.taken, r.used = append(r.taken, pieces.Get().(*[roomPiece]byte)), 0
	}
	b := r.taken[len(r.taken)-1][r.used : r.used : r.used+n]
	r.used += n
	return b
}

// release is for a transaction that is on disk: bbolt has let go of it. The memory of one that failed is left to the
// collector, because bbolt may still have that one open.
func (r *room) release() {
	for _, p := range r.taken {
		pieces.Put(p)
	}
	r.taken = nil
}
