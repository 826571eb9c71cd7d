package daemon

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// giveBackCode lets the kernel take back the pages of the program's own code: what an import or a verify ran stays
// counted as the process's memory otherwise, though idling needs little of it. Code is never written, so a page that
// is needed again comes back from the page cache.
func giveBackCode() {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		from, to, ok := codeOf(lines.Text(), program)
		if ok {
			// Advice can fail without harm.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}

// codeOf reads a line of /proc/self/maps: the addresses, when it is code of the program that is only read and run.
func codeOf(line, program string) (from, to uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[1] != "r-xp" || !strings.HasSuffix(line, " "+program) {
		return 0, 0, false
	}
	first, behind, _ := strings.Cut(fields[0], "-")
	a, err1 := strconv.ParseUint(first, 16, strconv.IntSize)
	b, err2 := strconv.ParseUint(behind, 16, strconv.IntSize)
	return uintptr(a), uintptr(b), err1 == nil && err2 == nil && b > a
}
