// Package packed keeps numbers in as few bytes as they need.
package packed

import "encoding/binary"

// Append adds numbers: small ones, of either sign, take one byte.
func Append(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// Take reads numbers that Append has written, and returns what follows them.
func Take(b []byte, into ...*int64) []byte {
	for _, n := range into {
		var size int
		*n, size = binary.Varint(b)
		b = b[size:]
	}
	return b
}
