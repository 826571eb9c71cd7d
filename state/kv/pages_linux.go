package kv

import (
	"syscall"

	"go.etcd.io/bbolt"
)

// giveBack lets the kernel take back the pages of the map that were read: they count as the process's memory. tx
// keeps the map in place meanwhile, and its size lies inside the map, while the file may be longer than the map.
func giveBack(tx *bbolt.Tx) {
	// The address comes from bbolt as a number, so no Go pointer is made of it. Advice can fail without harm.
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
}
