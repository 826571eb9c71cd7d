package proof

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// TestJudge: which ledger of a server is what this daemon expects, and what else happened.
func TestJudge(t *testing.T) {
	before := protocol.Ledger{Store: "s", Count: 5, Writer: "before"}
	mine := protocol.Ledger{Store: "s", Count: 5, Writer: "me"}
	known := mine
	known.Token = "mine"
	doubted := mine
	doubted.Doubt = true
	tests := []struct {
		name   string
		known  protocol.Ledger
		store  string
		count  int64
		writer string
		want   string
		since  string
	}{
		{"nothing happened", before, "s", 5, "before", "", ""},
		{"own write on its way", before, "s", 6, "me", "", ""},
		{"own writes", mine, "s", 7, "me", "", ""},
		{"another database", before, "t", 5, "before", protocol.CodeOtherStore, ""},
		{"an older copy", mine, "s", 4, "me", protocol.CodeStoreBehind, ""},
		{"another daemon wrote", before, "s", 6, "other", protocol.CodeWriterBehind, ""},
		{"as many writes, but others", before, "s", 5, "other", protocol.CodeWriterBehind, ""},
		{"counts that agree prove nothing", doubted, "s", 5, "me", protocol.CodeStoreBehind, ""},
		{"another daemon took over", mine, "s", 6, "other", protocol.CodeWriterReplaced, ""},
		{"as many writes, of another history", known, "s", 5, "me", protocol.CodeStoreBehind, "other"},
		{"more writes, after another history", known, "s", 7, "me", protocol.CodeStoreBehind, "other"},
		{"the same history", known, "s", 7, "me", "", "mine"},
		{"a write that was long ago", known, "s", 99, "me", "", ""},
	}
	for _, test := range tests {
		at := protocol.WriteLedger{Store: test.store, Count: test.count, Writer: test.writer, Since: test.since}
		kit.Equal(t, test.name, judge(&at, &test.known, "me"), test.want)
	}
}
