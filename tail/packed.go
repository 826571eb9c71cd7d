package tail

import "encoding/binary"

// appendPacked adds numbers: small ones, of either sign, take one byte.
func appendPacked(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// takePacked reads numbers that Append has written, and returns what follows them.
func takePacked(b []byte, into ...*int64) []byte {
	for _, n := range into {
		var size int
		*n, size = binary.Varint(b)
		b = b[size:]
	}
	return b
}
