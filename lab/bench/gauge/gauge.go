package gauge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which /proc counts the time of processes that have ended.
const tick = 10 * time.Millisecond

// Use is what processes used since they began.
type Use struct {
	CPU     time.Duration
	Written int64 // bytes that the kernel counts as caused to be written to disks
	// Stored is Written, but of no process more than it handed to the kernel. A kernel that keeps files in large folios
	// counts the whole folio, up to 1 MiB, when a write makes it dirty, and then writes only the changed blocks: a log
	// that is flushed with every 8 KiB counts a hundred times. What is written through mapped files is not in Stored.
	Stored int64
	RSS    int64 // bytes resident now; pages that processes share count in each
	Anon   int64 // of RSS, bytes that are no copy of a file
}

// Sub is what was used since before. Memory is what it is now.
func (u Use) Sub(before Use) Use {
	return Use{u.CPU - before.CPU, u.Written - before.Written, u.Stored - before.Stored, u.RSS, u.Anon}
}

// Add is the sum of two.
func (u Use) Add(v Use) Use {
	return Use{u.CPU + v.CPU, u.Written + v.Written, u.Stored + v.Stored, u.RSS + v.RSS, u.Anon + v.Anon}
}

// Tree is what a process, its children, and the children that it has waited for have used: all of a PostgreSQL when pid
// is its postmaster.
func Tree(pid int) (total Use, err error) {
	// A child that ends while it is read would count neither as a child nor as one that has ended: it is read again.
	for range patience {
		ended, before := waitedFor(pid), children(pid)
		if total, err = one(pid); err != nil {
			return total, err
		}
		total.CPU += ended
		whole := true
		for _, child := range before {
			u, err := one(child)
			whole = whole && err == nil
			total = total.Add(u)
		}
		if whole && ended == waitedFor(pid) && slices.Equal(before, children(pid)) {
			break
		}
	}
	return total, nil
}

// patience is how often a tree that changes is read at most; the last reading counts.
const patience = 20

// waitedFor is the processor time of the children that a process has waited for.
func waitedFor(pid int) (total time.Duration) {
	f := stat(pid)
	if len(f) < 15 {
		return 0
	}
	for _, ticks := range f[13:15] {
		if n, err := strconv.ParseInt(ticks, 10, 64); err == nil {
			total += time.Duration(n) * tick
		}
	}
	return total
}

// one is a process without its children. The kernel adds what ended children wrote to what the parent wrote.
func one(pid int) (Use, error) {
	var u Use
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	tasks, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return u, fmt.Errorf("tasks of %d: %w", pid, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join(dir, "task", task.Name(), "schedstat"))
		if err != nil {
			continue // the thread has ended
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			return u, fmt.Errorf("time of %d: %w", pid, err)
		}
		u.CPU += time.Duration(ns)
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return u, fmt.Errorf("memory of %d: %w", pid, err)
	}
	u.RSS, u.Anon = Field(status, "VmRSS:")<<10, Field(status, "RssAnon:")<<10
	written, err := os.ReadFile(filepath.Join(dir, "io"))
	if err != nil {
		return u, fmt.Errorf("writes of %d: %w", pid, err)
	}
	u.Written = Field(written, "write_bytes:") - Field(written, "cancelled_write_bytes:")
	u.Stored = min(u.Written, Field(written, "wchar:"))
	return u, nil
}

// Field is the number behind a name in a table of lines, as /proc has them; 0 when there is none.
func Field(table []byte, name string) int64 {
	for line := range strings.Lines(string(table)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// stat is what /proc says of a process, from its state on: the name before it may hold anything.
func stat(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	s := string(text)
	return strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
}

func children(parent int) (pids []int) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if f := stat(pid); err == nil && len(f) > 1 && f[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}
