package session_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	. "github.com/ccship/ccship/transcript/session"
)

// TestCheckpointContents compares a checkpoint with its conversation.
func TestCheckpointContents(t *testing.T) {
	d := newDialog()
	d.prompt("Fix the rounding in the cart")
	d.edit("Read", "/home/kim/shop/cart.go")
	d.edit("Edit", "/home/kim/shop/cart.go")
	d.edit("Read", "/home/kim/shop/tax.go")
	d.edit("Edit", "/home/kim/shop/cart.go")
	d.answer(50_000)
	d.prompt("Now the tests")
	d.answer(140_000)
	k := detect(d)
	want := Checkpoint{
		Trigger: Trigger80, Line: 7, UUID: d.leaf, Time: time.Date(2026, 8, 20, 9, 0, 8, 0, time.UTC), Tokens: 140_000, Limit: 167_000,
		Model: "claude-haiku-4-5",
		Summary: "Title: Fix the rounding in the cart\nEarlier: Fix the rounding in the cart\nPrompt: Now the tests\n" +
			"Answer: Answer 5. It is done.\nTools: Edit 2, Read 2",
		ActiveFiles: []string{"/home/kim/shop/cart.go", "/home/kim/shop/tax.go"},
	}
	kit.Require(t, len(k.checkpoints) == 1, "%d marks", len(k.checkpoints))
	got := k.checkpoints[0]
	kit.Equal(t, "context hash "+got.ContextHash, len(got.ContextHash), 16)
	got.ContextHash = ""
	kit.Same(t, "differs", cmp.Diff(want, got))
	d.add(d.leaf, `"type":"assistant","message":{"id":"s","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}`)
	d.edit("Read", "/home/kim/shop/tax.go")
	k.read(d, 8, len(d.lines))
	now := k.detector.Current(&k.fold, TriggerManual, 9)
	if now.Tokens != 140_000 || now.UUID != d.leaf || now.Line != 9 || now.Trigger != TriggerManual || !strings.HasSuffix(now.Summary, "Answer: Answer 7. It is done.\nTools: Read 3, Edit 2") {
		t.Errorf("now: %+v", now)
	}
}

// TestCheckpointSummary: the summary describes the present, without what a rewind removed or tools from before a
// compaction.
func TestCheckpointSummary(t *testing.T) {
	d := newDialog()
	d.prompt("begin")
	d.edit("Write", "/a")
	d.answer(1000)
	back := d.leaf
	d.prompt("wrong")
	d.answer(1000)
	d.promptAt(back, "right")
	k := detect(d)
	if got, want := k.detector.Current(&k.fold, TriggerManual, 0).Summary, "Title: begin\nEarlier: begin\nPrompt: right\nAnswer: Answer 2. It is done.\nTools: Write 1"; got != want {
		t.Errorf("after a rewind:\n%s\nwant\n%s", got, want)
	}
	d.boundary("manual", 9000, 100)
	d.edit("Read", "/a")
	k = detect(d)
	got := k.detector.Current(&k.fold, TriggerManual, 0).Summary
	kit.Check(t, strings.HasSuffix(got, "Tools: Read 1"), "after a compaction:\n%s", got)
	d = newDialog()
	d.prompt("only this")
	k = detect(d)
	kit.Equal(t, "a prompt that is the title", k.detector.Current(&k.fold, TriggerManual, 0).Summary, "Prompt: only this")
}

// TestCheckpointSummaryIsBounded makes summaries of long, multi-byte and invalid texts.
func TestCheckpointSummaryIsBounded(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("가나다 라마바. ", 3000), strings.Repeat("한", 40_000), strings.Repeat("no end ", 9000), strings.Repeat("x", 20_000),
		"", "\n\t\r ", "a\xff\xfeb", strings.Repeat("짧은 문장입니다。", 2000),
		strings.Repeat("한", 3000) + strings.Repeat(" ", 1500) + "끝",
	} {
		d := newDialog()
		for range 3 {
			d.prompt(text)
			for i := range 40 {
				d.edit(fmt.Sprintf("mcp__%d_%s", i, strings.Repeat("n", 90)), "/"+strings.Repeat("p", 3000))
			}
			d.add(d.leaf, fmt.Sprintf(`"type":"assistant","message":{"id":"a%d","model":"m","content":[{"type":"text","text":%q}]}`, d.n, text))
		}
		detect(d).restart(t)
		d.boundary("manual", 9000, 100)
		k := detect(d)
		for _, m := range k.checkpoints {
			kit.Check(t, !strings.Contains(m.Summary, "\uFFFD") || !utf8.ValidString(text),
				"%.10q: a character was cut in %q", text, m.Summary)
			kit.Check(t, !strings.HasPrefix(text, "짧은") || strings.Contains(m.Summary, "Answer: 짧은"),
				"not from the beginning of a sentence: %q", m.Summary)
			if n := utf8.RuneCountInString(m.Summary); n > 1000 || !utf8.ValidString(m.Summary) {
				t.Errorf("%.10q: a summary of %d characters, valid %v", text, n, utf8.ValidString(m.Summary))
			}
			kit.Has(t, fmt.Sprintf("%.10q: no tools in", text), m.Summary, "Tools: mcp__")
			kit.Check(t, len(m.ActiveFiles) <= 20, "%d active files", len(m.ActiveFiles))
		}
		state, _ := k.detector.MarshalBinary()
		kit.Check(t, len(state) <= 24<<10, "%.10q: a state of %d bytes", text, len(state))
	}
}

// TestContextHashByDefinition computes the hash by its definition.
func TestContextHashByDefinition(t *testing.T) {
	of := func(names ...string) string {
		var sum [8]byte
		for _, name := range names {
			h := sha256.Sum256(append(sum[:], name...))
			copy(sum[:], h[:])
		}
		return fmt.Sprintf("%x", sum)
	}
	d := newDialog()
	check := func(names ...string) {
		t.Helper()
		k := detect(d)
		got, want := k.detector.Current(&k.fold, TriggerManual, 0).ContextHash, of(names...)
		kit.Check(t, got == want, "got %s, want %s of %q", got, want, names)
	}
	check()
	one := d.prompt("hello")
	two := d.add(d.leaf, `"type":"assistant","message":{"id":"m","model":"m","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"tool_use","id":"t","name":"Read","input":{}}]}`)
	three := d.add(d.leaf, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}`)
	check(one, two, three)
	d.add(d.leaf, `"type":"system","subtype":"turn_duration","durationMs":5`)
	check(one, two, three)
	d.boundary("manual", 9000, 100)
	boundary := strings.Split(string(d.lines[len(d.lines)-2]), `"uuid":"`)[1][:36]
	four := d.prompt("more")
	check(boundary, four)
	// A prompt that only the queue has seen.
	for _, op := range []string{`"operation":"enqueue","content":"quick"`, `"operation":"remove"`} {
		d.lines = append(d.lines, []byte(fmt.Sprintf(`{"type":"queue-operation",%s,"sessionId":%q,"timestamp":"2026-08-20T10:00:00Z"}`, op, session1)))
		d.seen = append(d.seen, true)
	}
	for i := range d.lines {
		d.lines[i] = []byte(strings.Replace(string(d.lines[i]), "2.1.235", "2.1.30", 1))
	}
	d.add(d.leaf, `"type":"system","subtype":"turn_duration","durationMs":5`)
	check(boundary, four, "text:quick")
}

// TestContextHash: equal conversations have equal hashes wherever they are stored, and abandoned branches do not count.
func TestContextHash(t *testing.T) {
	hash := func(talk func(d *dialog)) string {
		d := newDialog()
		talk(d)
		k := detect(d)
		return k.detector.Current(&k.fold, TriggerManual, 0).ContextHash
	}
	three := func(d *dialog) {
		for range 3 {
			d.turn(1000)
		}
	}
	plain := hash(three)
	kit.Equal(t, "a copy in another session has another hash",
		hash(func(d *dialog) { d.session = strings.Replace(session1, "1", "7", 1); three(d) }), plain)
	longer := hash(func(d *dialog) { three(d); d.prompt("more") })
	kit.Check(t, longer != plain, "a longer conversation has the same hash")
	rewound := hash(func(d *dialog) {
		d.turn(1000)
		d.turn(1000)
		back, n := d.leaf, d.n
		d.prefix = "9"
		d.turn(1000)
		d.turn(1000)
		d.prefix, d.n = "0", n
		d.promptAt(back, "prompt 4")
		d.answer(1000)
	})
	kit.Equal(t, "what was taken back changes the hash", rewound, plain)
	compacted := func(before func(d *dialog)) string {
		return hash(func(d *dialog) {
			before(d)
			d.n = 50
			d.boundary("manual", 9000, 100)
			d.turn(2000)
		})
	}
	kit.Equal(t, "what was compacted away changes the hash", compacted(three), compacted(func(d *dialog) { d.turn(1000) }))
	deep := func(turns int) string {
		return hash(func(d *dialog) {
			var back string
			for i := range 700 {
				d.turn(1000)
				if i == turns {
					back = d.leaf
				}
			}
			detect(d).restart(t)
			d.promptAt(back, "from the beginning")
		})
	}
	one, again := deep(1), deep(1)
	kit.Check(t, one == again && one != deep(2), "a long way back: equal transcripts have different hashes, or different ones equal")
}

// TestDetectorState rejects states that are not its own.
func TestDetectorState(t *testing.T) {
	d := newDialog()
	d.turn(140_000)
	k := detect(d)
	state, _ := k.detector.MarshalBinary()
	for _, bad := range [][]byte{nil, {9}, state[:len(state)-1], append(slices.Clone(state), 0)} {
		m := k.detector
		err := m.UnmarshalBinary(bad)
		kit.Check(t, err != nil, "%.8q is taken", bad)
		if fresh, _ := new(CheckpointDetector).MarshalBinary(); true {
			got, _ := m.MarshalBinary()
			kit.Check(t, slices.Equal(got, fresh), "%.8q leaves something behind", bad)
		}
	}
}

// TestCheckpointActiveFiles: paths lose the control characters that a terminal would interpret.
func TestCheckpointActiveFiles(t *testing.T) {
	d := newDialog()
	d.edit("Edit", "/home/kim/\u009b31mred\u0085\n\t.md")
	d.edit("Edit", "/home/kim/글 ü.md")
	d.answer(140_000)
	k := detect(d)
	want := []string{"/home/kim/글 ü.md", "/home/kim/31mred.md"}
	kit.Check(t, len(k.checkpoints) == 1 && slices.Equal(k.checkpoints[0].ActiveFiles, want), "%+v, want %q",
		k.checkpoints, want)
}

// TestCheckpointOfCompactionWithoutNumbers takes the tokens from before the compaction, and learns no limit from it.
func TestCheckpointOfCompactionWithoutNumbers(t *testing.T) {
	d := newDialog()
	d.prompt("begin")
	d.answer(60_000)
	d.add(d.leaf, `"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto"}`)
	kit.Equal(t, "got", detect(d).triggers(), "compact@60000")
}
