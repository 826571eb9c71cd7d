package kv

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"go.etcd.io/bbolt"
)

// giveBack lets the kernel take back the pages of the map that were read, which count as memory of the process. tx
// keeps the map in place meanwhile. The size of tx lies inside the map, but the file may be longer than the map.
func giveBack(tx *bbolt.Tx) {
	// bbolt gives the address as a number, so no Go pointer is made from it. A failure is harmless.
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
}

// mapped returns how many bytes of files are in the memory of this process, its program among them; 0: it is not known.
func mapped() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(text); err == nil && len(fields) > 2 {
		if pages, err := strconv.ParseInt(string(fields[2]), 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	return 0
}
