package protocol

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestReceipts(t *testing.T) {
	r := ReceiptsAfter(&Ledger{Store: "s", Count: 4})
	for _, x := range []struct {
		store string
		count int64
		want  bool
	}{
		{"s", 5, false}, {"s", 8, false}, {"s", 6, false}, // answers arrive in another order
		{"", 0, false},  // nothing was counted
		{"s", 6, true},  // a second write has this count
		{"s", 7, false}, // late
		{"s", 7, true}, {"s", 8, true}, {"s", 4, true},
		{"s", 2000, false}, {"s", 1999, false}, {"s", 1999, true},
	} {
		kit.Equal(t, fmt.Sprintf("%+v", x), r.Repeats(&Ledger{Store: x.store, Count: x.count}), x.want)
	}
}

// TestReceiptsOfFirstAnswers: before its first answer a client knows no store, and several requests may be under way.
func TestReceiptsOfFirstAnswers(t *testing.T) {
	r := ReceiptsAfter(&Ledger{})
	for _, count := range []int64{2, 1, 3} {
		kit.Check(t, !r.Repeats(&Ledger{Store: "s", Count: count}), "%d", count)
	}
	kit.Check(t, r.Repeats(&Ledger{Store: "s", Count: 3}), "the second 3")
	kit.Check(t, r.Repeats(&Ledger{Store: "t", Count: 4}), "another store")
}
