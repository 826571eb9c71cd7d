package library

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// runningIn is the process that has a session open, according to Claude Code's list (<folder>/<pid>.json); 0: none.
// Claude Code leaves entries of ended processes behind.
func runningIn(folder, session string) (pid int) {
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
		}
		if err == nil && json.Unmarshal(text, &said) == nil && said.Session == session {
			return n
		}
	}
	return 0
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
