//go:build !windows

package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// alive says whether a process runs: one that has ended and that nobody has waited for does not.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
