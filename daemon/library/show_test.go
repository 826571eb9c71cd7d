package library

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

// TestDescribeCompaction: what a transcript does not say of a compaction is not made up.
func TestDescribeCompaction(t *testing.T) {
	for _, c := range []struct {
		compact transcript.Compact
		want    string
	}{
		{transcript.Compact{}, ""},
		{transcript.Compact{Pre: 167000}, "at 167000 tokens"},
		{transcript.Compact{Trigger: "auto", Pre: 167000, Post: 9000}, "auto, at 167000 tokens, 9000 left"},
	} {
		kit.Equal(t, fmt.Sprintf("%+v", c.compact), describeCompaction(&c.compact), c.want)
	}
}
