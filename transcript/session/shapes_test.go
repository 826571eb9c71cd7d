package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// shapes are 44 conversations with the rewinds that a person sees in them. A record is "kind uuid parent text", with "-"
// for no parent; the kinds are in shapeRecord. back is the lines gone back to, -1 for the beginning; a number with "~"
// is a rewind that turned out to be none. clears is how often the context was cleared.
var shapes = []struct {
	name, back string
	clears     int
	records    string
}{
	{"a chain", "", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3"},
	{"an edited prompt is a sibling", "1", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 2 other"},
	{"back by two turns", "1", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 4 three; a 6 5; u 7 2 four"},
	{"to the first prompt", "-1", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 - again"},
	{"twice in a row to one message", "1 1", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 2 b; a 6 5; u 7 2 c"},
	{"two rewinds, the second further back", "3 1", 0,
		"u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 4 three; a 6 5; u 7 4 b; a 8 7; u 9 2 c"},
	{"of a prompt without an answer", "1", 0, "u 1 - one; a 2 1; u 3 2 two; u 4 2 three"},
	{"into what was abandoned before", "1 ~1 1", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 2 b; a 6 5; u 7 4 c"},
	{"to a prompt's own text again", "1", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 5 2 two"},
	{"after an interruption", "1", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; i 5 4; u 6 2 b"},
	{"an interruption, and on", "", 0, "u 1 - one; a 2 1; i 3 2; u 4 3 two"},
	{"across a compaction", "-1", 0, "u 1 - one; a 2 1; c 3 -; s 4 3; u 5 4 two; a 6 5; u 7 - back"},
	{"within what follows a compaction", "5", 0, "u 1 - one; a 2 1; c 3 -; s 4 3; u 5 4 two; a 6 5; u 7 6 three; a 8 7; u 9 6 b"},
	{"a compaction", "", 0, "u 1 - one; a 2 1; c 3 -; s 4 3; u 5 4 two; a 6 5"},
	{"a compaction by command", "", 0, "u 1 - one; a 2 1; c 3 -; s 4 3; m 5 4; l 6 5; u 7 6 two"},
	{"a compaction that copies records", "", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; c 5 -; s 6 5; u 3 6 two; a 4 3; u 7 4 three"},
	{"two compactions", "", 0, "u 1 - one; a 2 1; c 3 -; s 4 3; u 5 4 two; a 6 5; c 7 -; s 8 7; u 9 8 three"},
	{"parallel tools", "", 0, "u 1 - one; t 2 1 x; t 3 2 y; r 4 2 x; r 5 3 y; a 6 5; u 7 6 two"},
	{"results below both calls, the first goes on", "", 0, "u 1 - one; t 2 1 x; t 3 2 y; r 5 3 y; r 4 2 x; a 6 4; u 7 6 two"},
	{"attachments beside an answer", "", 0, "u 1 - one; h 2 1; h 3 1; a 4 2; u 5 4 two; h 6 4"},
	{"a late attachment on an older message", "", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; h 5 2; u 6 4 three"},
	{"progress beside a call", "", 0, "u 1 - one; t 2 1 x; p 3 2; p 4 3; r 5 2 x; a 6 5; u 7 6 two"},
	{"an exit without effect", "", 0, "u 1 - one; a 2 1; m 3 2; l 4 3; l 5 4; u 6 2 two"},
	{"a command, and on from before it", "", 0, "u 1 - one; a 2 1; l 3 2; u 4 2 two; a 5 4; l 6 5; u 7 5 three"},
	{"only a call was cut", "", 0, "u 1 - one; a 2 1; t 3 2 x; u 4 2 two"},
	{"two writers", "1 ~1", 0, "u 1 - one; a 2 1; u 3 2 mine; a 4 3; u 5 2 yours; a 6 5; a 7 4"},
	{"two sessions in a file", "", 0, "u 1 - one; a 2 1; S; u 3 - other; a 4 3; u 5 4 more"},
	{"two sessions in a file, a rewind in the second", "3", 0, "u 1 - one; a 2 1; S; u 3 - other; a 4 3; u 5 4 more; a 6 5; u 7 4 b"},
	{"an unknown parent in between", "", 0, "u 1 - one; a 2 1; u 3 2 two; p 4 x; u 5 4 three"},
	{"an answer of an unknown parent", "", 0, "u 1 - one; a 2 x; u 3 2 two; a 4 3"},
	{"a prompt of an unknown parent", "", 0, "u 1 - one; a 2 1; u 3 x two; a 4 3"},
	{"a file that begins in the middle", "1", 0, "u 1 x one; a 2 1; u 3 2 two; a 4 3; u 5 2 b"},
	{"a parent after its child", "1", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 6 5 three; p 5 2"},
	{"a record that is its own parent", "", 0, "u 1 - one; a 2 2; u 3 2 two"},
	{"a loop", "", 0, "u 1 2 one; a 2 1; u 3 2 two"},
	{"re-appended history", "", 0, "u 1 - one; a 2 1; u 3 2 two; a 4 3; u 1 - one; a 2 1; u 5 4 three"},
	{"a queued prompt recorded twice", "", 0, "u 1 - one; a 2 1; q 3 2 also; u 4 2 also; a 5 4"},
	{"a plan with a cleared context", "", 1, "u 1 - one; a 2 1; P 3 - do it; a 4 3; u 5 4 two"},
	{"a plan below a root of the program's own", "", 1, "u 1 - one; a 2 1; m 3 -; P 4 3 do it; a 5 4"},
	{"across a compaction, to the middle", "1", 0,
		"u 1 - one; a 2 1; u 3 2 two; a 4 3; c 5 -; s 6 5; u 7 6 three; a 8 7; u 9 2 b"},
	{"to what a compaction kept", "5", 0,
		"u 1 - one; a 2 1; u 3 2 two; a 4 3; c 5 -; s 6 5; u 3 6 two; a 4 3; u 7 4 three; a 8 7; u 9 6 b"},
	{"to before what a compaction kept", "1", 0,
		"u 1 - one; a 2 1; u 3 2 two; a 4 3; c 5 -; s 6 5; u 3 6 two; a 4 3; u 7 4 three; a 8 7; u 9 2 b"},
	{"to before a cleared context", "1", 1, "u 1 - one; a 2 1; P 3 - do it; a 4 3; u 5 2 b"},
	{"a rewind after a cleared context", "3", 1, "u 1 - one; a 2 1; P 3 - do it; a 4 3; u 5 4 two; a 6 5; u 7 4 b"},
}

// shapeRecord is a record of a shape.
func shapeRecord(session, short string) string {
	f := strings.SplitN(strings.TrimSpace(short)+"   ", " ", 4)
	kind, uuid, parent, text := f[0], f[1], `"`+f[2]+`"`, strings.TrimSpace(f[3])
	if f[2] == "-" || f[2] == "" {
		parent = "null"
	}
	typ := "user"
	var more string
	switch kind {
	case "u", "P":
		more = fmt.Sprintf(`"message":{"role":"user","content":%q}`, text)
		if kind == "P" {
			more += `,"planContent":"# Plan"`
		}
	case "a":
		typ, more = "assistant", fmt.Sprintf(`"message":{"id":"m%s","model":"m","content":[{"type":"text","text":"answer %s"}]}`, uuid, uuid)
	case "t":
		typ, more = "assistant", fmt.Sprintf(`"message":{"id":"m1","model":"m","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{}}]}`, text)
	case "r":
		more = fmt.Sprintf(`"message":{"content":[{"type":"tool_result","tool_use_id":%q,"content":"ok"}]}`, text)
	case "i":
		more = `"message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}`
	case "m":
		more = `"isMeta":true,"message":{"content":"<local-command-caveat>Caveat"}`
	case "l":
		more = `"message":{"content":"<command-name>/exit</command-name>"}`
	case "s":
		more = `"isCompactSummary":true,"message":{"content":"Summary"}`
	case "c":
		typ, more = "system", `"subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":9}`
	case "h":
		typ, more = "attachment", `"attachment":{"type":"hook_success"}`
	case "q":
		typ, more = "attachment", fmt.Sprintf(`"attachment":{"type":"queued_command","commandMode":"prompt","prompt":%q}`, text)
	case "p":
		typ, more = "progress", `"data":{"type":"bash_progress"}`
	default:
		panic("no such kind: " + kind)
	}
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":%q,%s}`, typ, uuid, parent, session, more)
}

// shapeLines are a shape's records as lines.
func shapeLines(records string) (lines []string) {
	session := "one"
	for _, short := range strings.Split(records, ";") {
		if strings.TrimSpace(short) == "S" {
			session = "two"
			continue
		}
		lines = append(lines, shapeRecord(session, short))
	}
	return lines
}

// TestShapes finds the rewinds that a person sees, and no others, also when it is stored after every record.
func TestShapes(t *testing.T) {
	kit.Check(t, len(shapes) >= 44, "there are %d shapes", len(shapes))
	for _, tt := range shapes {
		var s Fold
		var back []string
		for i, line := range shapeLines(tt.records) {
			for _, e := range s.Add(int64(i), transcript.Parse([]byte(line))) {
				switch e.Kind {
				case RewindEvent:
					back = append(back, fmt.Sprint(e.Rewind.ToLine))
				case RewindUndoneEvent:
					back = append(back, fmt.Sprint("~", e.Rewind.ToLine))
				}
			}
			s = *restore(t, &s)
		}
		kit.Equal(t, tt.name+": went back to", strings.Join(back, " "), tt.back)
		kit.Equal(t, tt.name+": cleared times", len(s.Clears()), tt.clears)
		kept, seen := len(s.Rewinds()), strings.Count(tt.back, " ")+1-2*strings.Count(tt.back, "~")
		kit.Check(t, tt.back == "" || kept == seen, "%s: keeps %d rewinds, want %d", tt.name, kept, seen)
	}
}

// objects are a file's records as text, those of glued lines one by one. They are found without the project's own
// code, which is held to them.
func objects(t testing.TB, file string) (lines [][]byte) {
	t.Helper()
	data := kit.Try(os.ReadFile(file)).Must(t)
	for _, line := range bytes.Split(data, []byte("\n")) {
		text := bytes.TrimSpace(line)
		if json.Valid(text) {
			if bytes.HasPrefix(text, []byte("{")) {
				lines = append(lines, text)
			}
			continue
		}
		found := pieces(text)
		if own := transcript.Recover(line); transcript.Scan(line).Shape == transcript.Malformed && len(own) != len(found) {
			t.Errorf("%s: of a damaged line %d records are recovered, want %d", file, len(own), len(found))
		}
		lines = append(lines, found...)
	}
	return lines
}

// pieces are the whole records of a damaged line: those before the damage, and those behind it from the first position
// on from which the rest of the line is whole.
func pieces(line []byte) (found [][]byte) {
	line = bytes.ReplaceAll(line, []byte{0}, nil)
	found, rest := wholeObjects(line)
	for at := range len(rest) {
		if !bytes.HasPrefix(rest[at:], []byte(`{"type":`)) && !bytes.HasPrefix(rest[at:], []byte(`{"parentUuid":`)) {
			continue
		}
		if behind, end := wholeObjects(rest[at:]); len(end) == 0 {
			return append(found, behind...)
		}
	}
	return found
}

// wholeObjects are the objects that a text begins with, and what follows them.
func wholeObjects(text []byte) (found [][]byte, rest []byte) {
	for {
		text = bytes.TrimSpace(text)
		var one json.RawMessage
		d := json.NewDecoder(bytes.NewReader(text))
		if !bytes.HasPrefix(text, []byte("{")) || d.Decode(&one) != nil {
			return found, text
		}
		found = append(found, one)
		text = text[d.InputOffset():]
	}
}

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
