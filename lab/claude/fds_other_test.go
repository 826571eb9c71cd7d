//go:build unix && !linux

package claude_test

import "testing"

// watcher is nothing where the system does not show a process's descriptors.
type watcher struct{}

func watch(int, string) *watcher { return &watcher{} }

func (*watcher) end(t testing.TB) {
	t.Helper()
	t.Log("the daemon's descriptors are looked at on Linux only")
}

func openBelow(int, string) map[string]bool { return nil }
