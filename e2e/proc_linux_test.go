package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cost is what a process has used so far, from /proc.
type cost struct {
	cpu   float64 // seconds on a processor, system time included
	wrote int64   // bytes it caused to be written to disks
	rss   int64   // bytes resident now
	anon  int64   // of rss, bytes that are no copy of a file
	peak  int64   // bytes resident at most
	files int     // open descriptors
}

// measure takes processor time from the scheduler: the usual hundredths of a second are too coarse for idleness.
func measure(pid int) (cost, error) {
	var c cost
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	tasks, err := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	if err != nil || len(tasks) == 0 {
		return c, fmt.Errorf("read tasks of %d: %w", pid, os.ErrNotExist)
	}
	for _, task := range tasks {
		if data, err := os.ReadFile(task); err == nil { // a thread may have ended
			var ns int64
			if _, err := fmt.Sscan(string(data), &ns); err != nil {
				return c, err
			}
			c.cpu += float64(ns) / 1e9
		}
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return c, err
	}
	c.rss, c.anon = field(status, "VmRSS:")<<10, field(status, "RssAnon:")<<10
	c.peak = field(status, "VmHWM:") << 10
	io, err := os.ReadFile(filepath.Join(dir, "io"))
	if err != nil {
		return c, err
	}
	c.wrote = field(io, "write_bytes:")
	descriptors, err := os.ReadDir(filepath.Join(dir, "fd"))
	c.files = len(descriptors)
	return c, err
}

// field is the number behind a name in one of /proc's tables.
func field(table []byte, name string) int64 {
	for line := range strings.Lines(string(table)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64) // 0 when there is none
			return n
		}
	}
	return 0
}
