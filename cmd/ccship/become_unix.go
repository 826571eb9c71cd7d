//go:build !windows

package main

import (
	"fmt"
	"os"
	"syscall"
)

// become runs another program instead of this one.
func become(program string, args []string) error {
	err := syscall.Exec(program, append([]string{program}, args...), os.Environ())
	return fmt.Errorf("run %s: %w", program, err)
}
