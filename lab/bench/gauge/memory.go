package gauge

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Memory is what one process holds, and how often it was woken.
type Memory struct {
	Peak  int64 // bytes resident at most so far
	PSS   int64 // bytes resident now; pages that processes share are divided among them
	Wakes int64 // times that one of its threads waited and was woken
}

// Look reads the memory of a process without its children.
func Look(pid int) (Memory, error) {
	var m Memory
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return m, fmt.Errorf("memory of %d: %w", pid, err)
	}
	m.Peak = field(status, "VmHWM:") << 10
	sums, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return m, fmt.Errorf("shares of %d: %w", pid, err)
	}
	m.PSS = field(sums, "Pss:") << 10
	tasks, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return m, fmt.Errorf("tasks of %d: %w", pid, err)
	}
	for _, task := range tasks {
		if text, err := os.ReadFile(filepath.Join(dir, "task", task.Name(), "status")); err == nil { // it may have ended
			m.Wakes += field(text, "voluntary_ctxt_switches:")
		}
	}
	return m, nil
}
