package proof

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// TestStillRefused forgets a refusal once the line was rewound: what is there now is another line.
func TestStillRefused(t *testing.T) {
	dead := map[int64]uint32{2: 0, 5: 1}
	generations := []protocol.ViewDigest{{Generation: 0}, {Generation: 1, RewoundTo: 4}, {Generation: 2, RewoundTo: 5}}
	for now, want := range []map[int64]bool{{2: true, 5: true}, {2: true, 5: true}, {2: true}} {
		diff := cmp.Diff(want, stillRefused(dead, generations, uint32(now)))
		kit.Check(t, diff == "", "generation %d (-want +got):\n%s", now, diff)
	}
}
