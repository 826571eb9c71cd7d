//go:build unix

package chaos

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// tell records what a person can read now: the headline of status and its advice, or, when the daemon has ended, its last
// words.
func (r *room) tell() {
	r.t.Helper()
	r.out.Hear(r.words())
}

func (r *room) words() string {
	r.t.Helper()
	if r.d != nil && r.d.Ended() {
		return r.plain("ended: " + kit.LastWords(r.d.Log.String()))
	}
	status := r.ccship("status")
	if status.code == 3 && r.d != nil && kit.Within(10*time.Second, r.d.Ended) { // it was about to
		return r.plain("ended: " + kit.LastWords(r.d.Log.String()))
	}
	said := []string{kit.Headline(status.text())}
	if advice := r.advice(); advice != "" {
		said = append(said, advice)
	}
	return r.plain(strings.Join(said, "; "))
}

// advice is the first thing that status advises, apart from what rewinds take: those are the room's own doing.
func (r *room) advice() string {
	r.t.Helper()
	var known struct{ Advice []struct{ Text string } }
	_ = json.Unmarshal([]byte(r.ccship("status", "--json").stdout), &known) // no advice: nothing is reported
	for _, a := range known.Advice {
		if !ofRewinds(a.Text) {
			return a.Text
		}
	}
	return ""
}

func ofRewinds(text string) bool {
	return strings.HasPrefix(text, "a rewrite took ") || strings.HasSuffix(text, " took lines out")
}

// plain takes out what differs from space to room and from run to run.
func (r *room) plain(text string) string { return kit.Plain(strings.ReplaceAll(text, r.dir, "~")) }

// TestDifferenceSees: what the proof compares with must itself see what is lost and what is wrong.
func TestDifferenceSees(t *testing.T) {
	t.Parallel()
	const disk = "a\nb\nc\nd"
	for got, want := range map[string][2]int{
		disk: {0, 0}, "a\nb\nc\n": {1, 0}, "": {4, 0}, "a\nx\nc\nd": {0, 1}, disk + "\ne\n": {0, 2}, "b\nc\nd": {1, 3},
	} {
		lost, wrong := difference([]byte(got), []byte(disk))
		kit.Check(t, lost == want[0] && wrong == want[1], "%q: %d lost, %d wrong, want %v", got, lost, wrong, want)
	}
}
