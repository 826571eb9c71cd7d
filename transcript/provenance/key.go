package provenance

import "crypto/sha256"

// Secret is the key of a store. Sums that a store keeps are hashed with it: a thief of the table alone cannot try
// texts against it.
type Secret [32]byte

// StoredSize is the length of a stored sum: seven bytes of the keyed hash of its Key, and one for its last byte.
const StoredSize = 8

// Seal returns a sum as it is stored. What Open makes of it equals Open of any other sum with the same Key, but for
// the last byte.
func (s *Secret) Seal(sum Sum) (out [StoredSize]byte) {
	var in [len(s) + SumSize - 1]byte
	copy(in[:], s[:])
	copy(in[len(s):], sum[:SumSize-1])
	full := sha256.Sum256(in[:])
	copy(out[:], full[:])
	out[StoredSize-1] ^= sum[SumSize-1]
	return out
}

// Open returns a stored sum as one that others can be compared with, if they went through Seal and Open too.
func Open(stored [StoredSize]byte) (sum Sum) {
	copy(sum[:], stored[:StoredSize-1])
	sum[SumSize-1] = stored[StoredSize-1]
	return sum
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
