package kv

import "sync"

// bbolt holds the values that it is given until the transaction ends. In an import these are most of what is allocated,
// so their memory is used again.
const (
	slabSize = 128 << 10
	slabMost = slabSize / 2 // a larger value has memory of its own
)

// pieces are those that no transaction has. The collector takes them when none is needed for a while.
var pieces = sync.Pool{New: func() any { return new([slabSize]byte) }}

// slab is the memory of one transaction's values.
type slab struct {
	taken []*[slabSize]byte
	used  int // bytes of the last one
}

func (r *slab) take(n int) []byte {
	if n > slabMost {
		return make([]byte, 0, n)
	}
	if len(r.taken) == 0 || r.used+n > slabSize {
		r.taken, r.used = append(r.taken, pieces.Get().(*[slabSize]byte)), 0
	}
	b := r.taken[len(r.taken)-1][r.used : r.used : r.used+n]
	r.used += n
	return b
}

// release is for a transaction that is on disk: bbolt has let go of it. The memory of one that failed is left to the
// collector, because bbolt may still have that one open.
func (r *slab) release() {
	for _, p := range r.taken {
		pieces.Put(p)
	}
	r.taken = nil
}
