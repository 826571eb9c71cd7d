package library

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Process is a Claude Code that has a session open.
type Process struct {
	PID    int
	Status string // "idle", "busy" or "shell"; "" where it does not say
}

// Running returns the processes that have sessions open on this machine, by session.
func (l *Library) Running() map[string]Process {
	all := map[string]Process{}
	for _, root := range l.Roots {
		maps.Copy(all, runningIn(filepath.Join(filepath.Dir(root), "sessions")))
	}
	return all
}

// runningIn returns the processes of Claude Code's list (<folder>/<pid>.json), by session. Claude Code leaves entries
// of ended processes behind.
func runningIn(folder string) map[string]Process {
	all := map[string]Process{}
	entries, _ := os.ReadDir(folder) // versions before 2.1 have none
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		n, err := strconv.Atoi(name)
		if !ok || err != nil || n <= 0 || !alive(n) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		var said struct {
			Session string `json:"sessionId"`
			Status  string `json:"status"`
		}
		if err == nil && json.Unmarshal(text, &said) == nil && said.Session != "" {
			all[said.Session] = Process{n, said.Status}
		}
	}
	return all
}

// alive says whether a process exists.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false // only Windows checks
	}
	defer func() { _ = p.Release() }()
	if runtime.GOOS == "windows" {
		return true
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}
