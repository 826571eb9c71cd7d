package provenance

import "crypto/sha256"

// Secret is the key of a store. Sums that a store keeps are hashed with it: a thief of the table alone cannot try
// texts against it.
type Secret [32]byte

// StoredSize is the length of a stored sum: seven bytes of the keyed hash of its Key, and one for its last byte.
const StoredSize = 8

// Seal returns a sum as it is stored.
func (s *Secret) Seal(sum Sum) (out [StoredSize]byte) {
	var in [len(s) + SumSize - 1]byte
	copy(in[:], s[:])
	copy(in[len(s):], sum[:SumSize-1])
	full := sha256.Sum256(in[:])
	copy(out[:], full[:])
	out[StoredSize-1] ^= sum[SumSize-1]
	return out
}

// Asked finds the sums that a caller asks for among stored ones. Of others it says nothing.
type Asked map[[StoredSize - 1]byte]asked

type asked struct {
	key  Key
	mask byte
}

// Ask prepares to look for sums.
func (s *Secret) Ask(sums []Sum) Asked {
	out := make(Asked, len(sums))
	for _, sum := range sums {
		plain := sum
		plain[SumSize-1] = 0
		sealed := s.Seal(plain)
		out[[StoredSize - 1]byte(sealed[:StoredSize-1])] = asked{sum.Key(), sealed[StoredSize-1]}
	}
	return out
}

// Open returns a stored sum, if it is one of those that are asked for but for its last byte.
func (a Asked) Open(stored [StoredSize]byte) (sum Sum, ok bool) {
	x, ok := a[[StoredSize - 1]byte(stored[:StoredSize-1])]
	copy(sum[:], x.key[:])
	sum[SumSize-1] = stored[StoredSize-1] ^ x.mask
	return sum, ok
}

// Name returns the number by which a store finds the edits of a file.
func (s *Secret) Name(file string) int64 {
	full := sha256.Sum256(append(s[:], Name(file)...))
	var n int64
	for _, b := range full[:8] {
		n = n<<8 | int64(b)
	}
	return n
}
