//go:build unix

package pgtest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// children returns the processes that a process has started, as /proc has it; none without /proc.
func children(parent int) (pids []int) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil {
			continue
		}
		if f := stat(pid); len(f) > 1 && f[1] == strconv.Itoa(parent) { // nil: it has ended meanwhile
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive tells a process from one that is gone, or that only nobody has waited for.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	f := stat(pid)
	return len(f) == 0 || f[0] != "Z"
}

// stat returns what /proc says of a process, from its state on: the name before it may hold anything. nil without
// /proc.
func stat(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	s := string(text)
	return strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
}

// PID returns the postmaster's process; 0 while the cluster does not run.
func (c *Cluster) PID() int { return c.pid }
