package kv

import (
	"syscall"

	"go.etcd.io/bbolt"
)

// giveBack lets the kernel take back the pages of the map that were read, which count as memory of the process. tx
// keeps the map in place meanwhile. The size of tx lies inside the map, but the file may be longer than the map.
func giveBack(tx *bbolt.Tx) {
	// bbolt gives the address as a number, so no Go pointer is made of it. A failure is harmless.
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
}
