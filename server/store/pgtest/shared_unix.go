//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

var (
	once   sync.Once
	shared *Cluster
	failed error
)

// Shared returns the one cluster of a test binary, made when it is first asked for, with Fast settings. The binary's
// TestMain calls Run, which ends it.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	in := need(t)
	once.Do(func() { shared, failed = newCluster(in, Fast) })
	kit.Must(t, failed)
	return shared
}

// Run runs a binary's tests, then ends the shared cluster. For TestMain: os.Exit(pgtest.Run(m)).
func Run(m *testing.M) (code int) {
	defer func() {
		if shared == nil {
			return
		}
		if err := shared.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "end the test's PostgreSQL:", err)
			code = 1
		}
	}()
	return m.Run()
}
