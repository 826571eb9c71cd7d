package daemon

import (
	"os"
	"strconv"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"golang.org/x/sys/unix"
)

// processFigures asks the kernel for the resource usage of this process.
func processFigures() *control.Process {
	p := &control.Process{CPUSeconds: cpuSeconds()}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			p.RSS = pages * int64(os.Getpagesize())
		}
	}
	return p
}

func cpuSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	const micro = 1e6
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/micro
}
