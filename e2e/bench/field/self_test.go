//go:build linux

package field_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/bench/corpus"
	"github.com/ccship/ccship/e2e/bench/league"
	"github.com/ccship/ccship/e2e/kit"
)

// TestSmall runs the harness on a small workload with what needs no other program: that every line of it comes, that
// figures are there, and that the comparison sees lines which a contestant without memory loses.
func TestSmall(t *testing.T) {
	t.Parallel()
	w := &world{made: map[string]*workload{}}
	w.settings = settings{form: "quick", rounds: 1, imports: []int{1}, hookMB: 1, appends: 4, rewinds: []int{1}, limit: 5 * time.Minute,
		files: []int{20}, idle: time.Second, active: []int{2, 3}, bytes: []int{1, 2}, verify: 1, out: t.TempDir()}
	w.settings.only = []string{ccship, theFloor, theHook}
	var err error
	w.source, err = corpus.Standard()
	kit.Must(t, err)
	table := &league.Table{Machine: map[string]string{}}
	w.find(table)
	for _, key := range []string{"import", "append", "rewind", "idle", "sessions", "bytes", "verify"} {
		w.scenario(t, table, key)
	}
	w.write(t, table)
	for _, by := range []string{ccship, theFloor} {
		if f := table.Scenarios[0].Figure(by, "1 MB: CPU"); f == nil || f.Values[0] <= 0 {
			t.Errorf("%s has no CPU time: %+v", by, f)
		}
	}
	sent := table.Scenarios[2].Figure(ccship, "1 MB: sent")
	if sent == nil || sent.Values[0] < 15 || sent.Values[0] > 500 {
		t.Errorf("a rewind of 10 lines of 4 kB, and 5 others, sent %+v kB", sent)
	}
	text, err := os.ReadFile(filepath.Join(w.out, "benchmarks.md"))
	kit.Must(t, err)
	for _, want := range []string{"| 3 sessions |", "Fitted: CPU a line", "| 2 MB |", "Fitted: peak memory", "1 MB: CPU of the server",
		"Not measured: " + theHook + " above 1 MB", "Measured: rounds: 1; load when it began"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// TestProbeSees: a contestant that sends everything anew at each call sends lines again, and one that is never called
// loses them.
func TestProbeSees(t *testing.T) {
	t.Parallel()
	w := &world{made: map[string]*workload{}, settings: settings{limit: time.Minute}}
	self, err := os.Executable()
	kit.Must(t, err)
	calls := 0
	forgetful := &contestant{name: "test", program: self, deliver: func(p *place) error {
		if calls++; calls > 1 {
			return nil
		}
		return floorOnce(p)
	}}
	rewound := probes[0]
	if lost, again, wrong, ok := w.probe(t, forgetful, rewound); !ok || lost != 5 || again != 0 || wrong != 0 {
		t.Errorf("never called again: %d lost, %d again, %d wrong, %t", lost, again, wrong, ok)
	}
	forgetful.deliver = floorOnce
	if lost, again, wrong, ok := w.probe(t, forgetful, rewound); !ok || lost != 0 || again < 140 || wrong != 0 {
		t.Errorf("all anew: %d lost, %d again, %d wrong, %t", lost, again, wrong, ok)
	}
}
