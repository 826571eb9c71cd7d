package main

import (
	"testing"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/e2e/kit"
)

// Following shows each message once, and a call once more when it has its result.
func TestFreshMessages(t *testing.T) {
	var seen seenMessages
	all := showtest.Messages().Messages
	kit.Equal(t, "at first", len(seen.fresh(all[:5])), 5)
	kit.Equal(t, "the same again", len(seen.fresh(all[:5])), 0)
	yes := true
	all[4].Type, all[4].Success, all[4].Output = "tool_complete", &yes, "package b"
	fresh := seen.fresh(all[1:7])
	kit.Check(t, len(fresh) == 3 && fresh[0].Output == "package b" && fresh[2].Content == "overloaded", "%+v", fresh)
}
