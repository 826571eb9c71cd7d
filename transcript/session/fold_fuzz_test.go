package session_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

func fuzzSeeds(f *testing.F) {
	for _, file := range fixtures(f) {
		lines := fixture(f, file)
		f.Add(bytes.Join(lines, []byte("\n")))
	}
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"tool_result","content":[{}]}]}]`))
	f.Add([]byte("{\"type\":\"assistant\",\"message\":{\"usage\":{\"input_tokens\":99999999999999999999,\"output_tokens\":-1e9}}}\n{\"\\u"))
}

// FuzzFold folds anything: it never panics, stays bounded, and a decoded state continues like the original.
func FuzzFold(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Fold
		var log Log
		var tree Tree
		for i, line := range bytes.Split(data, []byte("\n")) {
			r := transcript.Parse(line)
			copied := restore(t, &s)
			events := s.Add(int64(i), r)
			diff := cmp.Diff(append([]Event(nil), events...), append([]Event(nil), copied.Add(int64(i), r)...))
			kit.Require(t, diff == "", "line %d (-session +restored):\n%s", i, diff)
			for _, e := range events {
				log.Add(e)
			}
			tree.Add(int64(i), &r)
		}
		s.Summary()
		if log.Len() > DefaultLogSize {
			t.Errorf("%d messages", log.Len())
		}
		state, _ := log.MarshalBinary()
		var again Log
		kit.Must(t, again.UnmarshalBinary(state))
		var broken Fold
		_ = broken.UnmarshalBinary(data)
		_ = broken.Add(0, transcript.Parse(data))
	})
}
