//go:build linux

package field_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/table"
)

// TestSmall runs the harness on a small workload with what needs no other program: that every line of it comes, that
// figures are there, and that the comparison sees lines which a contestant without memory loses.
func TestSmall(t *testing.T) {
	t.Parallel()
	w := &world{made: map[string]*workload{}}
	w.settings = settings{rounds: 1, imports: []int{1}, hookMB: 1, appends: 4, rewinds: []int{1}, limit: 5 * time.Minute,
		files: []int{20}, idle: time.Second, active: []int{2, 3}, verify: 1}
	w.settings.only = []string{"ccship", "floor", "hook"}
	var err error
	w.source, err = corpus.Standard()
	kit.Must(t, err)
	w.find()
	found := map[string]*table.Table{}
	var page strings.Builder
	for _, key := range []string{"import", "append", "rewind", "idle", "sessions", "verify"} {
		found[key] = w.measure(t, key)
		found[key].Print(&page)
	}
	for _, by := range []string{ccship, theFloor} {
		if cpu, _ := found["import"].Value(by, "1 MB: CPU"); cpu <= 0 {
			t.Errorf("%s has no CPU time", by)
		}
	}
	if sent, _ := found["rewind"].Value(ccship, "1 MB: sent"); sent < 15 || sent > 500 {
		t.Errorf("a rewind of 10 lines of 4 kB, and 5 others, sent %g kB", sent)
	}
	for _, want := range []string{"| 3 sessions |", "1 MB: CPU of the server"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, page.String())
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
