package main

import "os"

// alive says whether a process runs.
func alive(pid int) bool {
	_, err := os.FindProcess(pid)
	return err == nil
}
