package session_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// TestLogShowsTheTree: of all that was said, the log shows what the tree has not abandoned, and nothing else; for the
// shapes, and for histories that nobody thought of.
func TestLogShowsTheTree(t *testing.T) {
	for _, x := range shapes {
		compareLogWithTree(t, x.name, x.records)
	}
	for seed := range uint64(500) {
		compareLogWithTree(t, fmt.Sprint("history ", seed), history(seed))
	}
}

// history is a conversation in the form of shapes, with rewinds to anywhere, unknown parents, compactions, cleared
// contexts, and at times a parent after its child.
func history(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 0))
	kinds := strings.Fields("u a u a u a t p h i l m")
	ids, leaf := []string{"-"}, "-"
	var records []string
	for i := range 6 + r.IntN(16) {
		id, kind, parent := fmt.Sprint(i+1), kinds[r.IntN(len(kinds))], leaf
		switch r.IntN(24) {
		case 0:
			parent = "x" + id
		case 1:
			kind, parent = "P", "-"
		case 2:
			kind, parent = "c", "-"
		}
		if kind == "u" && r.IntN(4) == 0 {
			parent = ids[r.IntN(len(ids))]
		}
		records = append(records, fmt.Sprintf("%s %s %s text %s", kind, id, parent, id))
		ids, leaf = append(ids, id), id
	}
	if i := r.IntN(len(records) - 1); r.IntN(5) == 0 {
		records[i], records[i+1] = records[i+1], records[i]
	}
	return strings.Join(records, "; ")
}

func compareLogWithTree(t *testing.T, name, records string) {
	t.Helper()
	var s Fold
	var log Log
	var tree Tree
	said, shown := map[int64]bool{}, map[int64]bool{}
	for i, line := range shapeLines(records) {
		r := transcript.Parse([]byte(line))
		tree.Add(int64(i), &r)
		for _, e := range s.Add(int64(i), r) {
			log.Add(e)
			said[e.Line] = said[e.Line] || e.Kind == PromptEvent || e.Kind == AnswerEvent
		}
		s = *restore(t, &s)
	}
	for _, m := range log.Messages(0, 0) {
		shown[m.Line] = shown[m.Line] || m.Kind == UserMessage || m.Kind == AssistantMessage
	}
	for line, yes := range said {
		if stays := tree.Abandoned(line) == 0; yes && shown[line] != stays {
			t.Errorf("%s: line %d is shown: %v, and stays: %v\n%s", name, line, shown[line], stays, records)
		}
	}
}

// TestWhatIsLeft: which lines a rewind leaves behind, also where they do not follow one another.
func TestWhatIsLeft(t *testing.T) {
	for _, x := range []struct{ name, records, left string }{
		{"one branch", "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 2 b", "[{2 3}]"},
		{"to the middle, across a compaction", "u 1 - one; a 2 1; u 3 2 two; a 4 3; c 5 -; s 6 5; u 7 6 three; a 8 7; u 9 2 b", "[{2 7}]"},
		{"to the beginning, across a compaction", "u 1 - one; a 2 1; c 3 -; s 4 3; u 5 4 two; u 6 - b", "[{0 4}]"},
		{"to what a compaction kept", "u 1 - one; a 2 1; u 3 2 two; c 4 -; s 5 4; u 3 5 two; u 6 3 three; u 7 5 b", "[{2 2} {6 6}]"},
		{"to before what it kept", "u 1 - one; a 2 1; u 3 2 two; c 4 -; s 5 4; u 3 5 two; u 6 3 three; u 7 2 b", "[{2 6}]"},
		{"from another branch", "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 2 b; a 6 5; u 7 4 c", "[{4 5}]"},
		{"found late", "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 6 5 three; p 5 2", "[{2 3}]"},
		{"lines without a record at the end", "u 1 - one; a 2 1; u 3 2 two; Q; u 4 2 b", "[{2 3}]"},
	} {
		var s Fold
		got := ""
		for i, line := range shapeLines(strings.Replace(x.records, "Q", "h - -", 1)) {
			for _, e := range s.Add(int64(i), transcript.Parse([]byte(strings.Replace(line, `"uuid":"-",`, "", 1)))) {
				if e.Kind == RewindEvent {
					got = fmt.Sprint(e.Rewind.Left)
				}
			}
		}
		kit.Equal(t, x.name+": left are the lines", got, x.left)
	}
}

// TestCompactionWithoutFigures: how full the context is after a compaction that does not say is not known, whatever was
// before it.
func TestCompactionWithoutFigures(t *testing.T) {
	var s Fold
	for i, line := range []string{
		promptLine("1", "2.1.42", "one"), below("1", answerText("2", "one")),
		`{"type":"system","subtype":"compact_boundary","uuid":"3","logicalParentUuid":"2","compactMetadata":{"trigger":"auto","preTokens":60}}`,
		below("3", promptLine("4", "2.1.42", "two")), below("3", promptLine("5", "2.1.42", "three")),
	} {
		s.Add(int64(i), transcript.Parse([]byte(line)))
	}
	sum := s.Summary()
	kit.Check(t, sum.Rewinds == 1 && !sum.Context.Known, "%d rewinds, context %+v", sum.Rewinds, sum.Context)
}
