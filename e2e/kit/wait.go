package kit

import (
	"fmt"
	"testing"
	"time"
)

// patience is how much longer than on a machine with nothing else to do a test waits: a limit is there to end a test
// that hangs, not to measure.
const patience = 12

// Eventually asks until cond holds. It ends the test when cond does not hold within limit, which is that of a quiet
// machine.
func Eventually(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	if !Within(patience*limit, cond) {
		t.Fatalf("not within %s: %s", patience*limit, what)
	}
}

// Within asks until cond holds, for limit at most, and reports whether it did. What has not happened for long is asked
// for less often: to ask often costs a program's start, and so delays what is waited for.
func Within(limit time.Duration, cond func() bool) bool {
	began := time.Now()
	for !cond() {
		waited := time.Since(began)
		if waited >= limit {
			return false
		}
		Pass(max(shortestPause, min(waited/8, longestPause)))
	}
	return true
}

// The pauses between two times that Within asks.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = 300 * time.Millisecond
)

// Pass lets real time go by: for what must not happen meanwhile, never to wait for something.
func Pass(d time.Duration) { <-time.After(d) }

// Must ends the test on an error that is the test's own.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal reports what is not as wanted.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, Tail(fmt.Sprintf("%#v", got), 2000), Tail(fmt.Sprintf("%#v", want), 2000))
	}
}

// Tail returns the last n bytes of a text.
func Tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
