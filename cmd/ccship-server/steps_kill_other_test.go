//go:build !unix

package main

// asKilled does nothing: only where there is SIGKILL does a test kill a server at a step.
func asKilled() {}
