//go:build unix

package sys

import (
	"math"

	"golang.org/x/sys/unix"
)

// filesAtLeast is how many descriptors are for files, and for connections of a database.
const filesAtLeast = 128

// Connections returns how many connections a server may have open, so that it still has descriptors for files.
func Connections() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	n := int(l.Cur)
	return max(1, n-filesAtLeast, n/2)
}
