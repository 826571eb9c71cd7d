package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ccship/ccship/e2e/kit"
	. "github.com/ccship/ccship/transcript/session"
)

// dialog writes a conversation's lines, and says of each whether it was written while watched.
type dialog struct {
	lines   [][]byte
	seen    []bool // written while watched
	n       int
	leaf    string
	model   string
	history bool // what comes is history
	session string
	prefix  string
}

func newDialog() *dialog { return &dialog{model: "claude-haiku-4-5", session: session1, prefix: "0"} }

// add writes a record that hangs off parent and is the leaf then; its uuid.
func (d *dialog) add(parent, rest string) string {
	d.n++
	uuid := fmt.Sprintf("%s%07d-0000-4000-8000-000000000000", d.prefix, d.n)
	up := "null"
	if parent != "" {
		up = `"` + parent + `"`
	}
	at := time.Date(2026, 8, 20, 9, 0, d.n, 0, time.UTC).Format(time.RFC3339Nano)
	d.lines = append(d.lines, []byte(fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,%s,"uuid":%q,"timestamp":%q,%s}`,
		up, rest, uuid, at, fmt.Sprintf(env, d.session, "2.1.235"))))
	d.seen = append(d.seen, !d.history)
	d.leaf = uuid
	return uuid
}

func (d *dialog) prompt(text string) string { return d.promptAt(d.leaf, text) }

func (d *dialog) promptAt(parent, text string) string {
	return d.add(parent, fmt.Sprintf(`"type":"user","message":{"role":"user","content":%q}`, text))
}

// answer fills the window with so many tokens.
func (d *dialog) answer(tokens int64) string {
	return d.add(d.leaf, fmt.Sprintf(
		`"type":"assistant","message":{"id":"msg_%s%d","model":%q,"role":"assistant","stop_reason":"end_turn","usage":{"input_tokens":10,"cache_read_input_tokens":%d,"output_tokens":5},"content":[{"type":"text","text":"Answer %d. It is done."}]}`,
		d.prefix, d.n, d.model, tokens-10, d.n))
}

func (d *dialog) turn(tokens int64) { d.prompt(fmt.Sprintf("prompt %d", d.n)); d.answer(tokens) }

// turns is a talk of prompts and their answers.
func turns(tokens ...int64) func(d *dialog) { return func(d *dialog) { d.turns(tokens...) } }

func (d *dialog) turns(tokens ...int64) {
	for _, n := range tokens {
		d.turn(n)
	}
}

func (d *dialog) edit(tool, path string) {
	d.add(d.leaf, fmt.Sprintf(`"type":"assistant","message":{"id":"msg_%s%d","model":%q,"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":%q,"input":{"file_path":%q}}]}`,
		d.prefix, d.n, d.model, d.n, tool, path))
}

func (d *dialog) boundary(trigger string, pre, post int64) {
	after := ""
	if post > 0 {
		after = fmt.Sprintf(`,"postTokens":%d`, post)
	}
	d.add("", fmt.Sprintf(`"type":"system","subtype":"compact_boundary","content":"Conversation compacted","logicalParentUuid":%q,"compactMetadata":{"trigger":%q,"preTokens":%d%s}`,
		d.leaf, trigger, pre, after))
	d.add(d.leaf, `"type":"user","isCompactSummary":true,"message":{"role":"user","content":"This session is being continued."}`)
}

// marker is a fold with its marks.
type detection struct {
	fold        Fold
	detector    CheckpointDetector
	checkpoints []Checkpoint
	fresh       []bool // of marks
}

func (k *detection) read(d *dialog, from, to int) {
	k.detector.BudgetChanged(&k.fold)
	for i := from; i < to; i++ {
		for _, r := range records(d.lines[i]) {
			for _, e := range slices.Clone(k.fold.Add(int64(i), r)) {
				if mark, due := k.detector.Add(&e, &k.fold, d.seen[i]); due {
					k.checkpoints, k.fresh = append(k.checkpoints, mark), append(k.fresh, d.seen[i])
				}
			}
		}
	}
}

// restart encodes all that is known and decodes it.
func (k *detection) restart(t testing.TB) {
	t.Helper()
	budget := k.fold.Budget
	k.fold = *restore(t, &k.fold)
	k.fold.Budget = budget
	state, _ := k.detector.MarshalBinary()
	var m CheckpointDetector
	kit.Must(t, m.UnmarshalBinary(state))
	again, _ := m.MarshalBinary()
	kit.Require(t, slices.Equal(state, again), "decoded marks encode to other bytes")
	k.detector = m
}

func detect(d *dialog) *detection {
	var k detection
	k.read(d, 0, len(d.lines))
	return &k
}

func (k *detection) triggers() string {
	var names []string
	for _, m := range k.checkpoints {
		name := fmt.Sprintf("%s@%d", m.Trigger, m.Tokens)
		if m.Automatic {
			name += "!"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestCheckpoints goes through what exceeds a threshold and what does not. The limit of a window of 200 000 tokens is
// 167 000: 80 % are 133 600, 90 % 150 300.
func TestCheckpoints(t *testing.T) {
	const k = 1000
	tests := []struct {
		name, want string
		talk       func(d *dialog)
	}{
		{"60, 82, 91, compaction", "auto_80@136940 auto_90@151970 compact@168000!", func(d *dialog) {
			d.turns(100_200, 136_940, 151_970)
			d.boundary("auto", 168*k, 30*k)
			d.turn(40 * k)
		}},
		{"a token below, and at it", "auto_80@133600 auto_90@150300", turns(133_599, 133_600, 150_299, 150_300)},
		{"from below 80 to above 90", "auto_90@160000", turns(100*k, 160*k, 140*k, 161*k)},
		{"from 70 to the boundary", "compact@168000!", func(d *dialog) {
			d.turn(117 * k)
			d.boundary("auto", 168*k, 0)
			d.turn(20 * k)
		}},
		{"a boundary that tells nothing", "compact@117000", func(d *dialog) {
			d.turn(117 * k)
			d.boundary("manual", 0, 0)
		}},
		{"a boundary that tells too much after it", "auto_80@140000 compact@160000", func(d *dialog) {
			d.turn(140 * k)
			d.boundary("manual", 160*k, 158*k)
		}},
		{"once in an epoch", "auto_80@140000 compact@168000! auto_80@141000 auto_90@155000", func(d *dialog) {
			d.turns(140*k, 142*k, 130*k, 140*k)
			d.boundary("auto", 168*k, 20*k)
			d.turns(141*k, 155*k)
		}},
		{"a drop of 40 % without a boundary", "auto_80@140000 auto_80@139000", turns(140*k, 84*k, 139*k)},
		{"a drop of 30 %", "auto_80@140000", turns(140*k, 98*k, 139*k)},
		{"a rewind", "auto_80@140000 auto_90@155000 auto_80@141000 auto_90@156000", func(d *dialog) {
			d.turn(100 * k)
			back := d.leaf
			d.turns(140*k, 155*k)
			d.promptAt(back, "another way")
			d.answer(141 * k)
			d.turn(156 * k)
		}},
		{"a larger window than thought", "auto_80@140000 auto_90@155000 auto_80@780000", func(d *dialog) {
			d.model = "claude-opus-4-6"
			d.turns(140*k, 155*k, 210*k, 400*k, 780*k)
		}},
		{"to a larger model, back, and back again", "auto_80@140000 auto_90@155000 auto_80@775000", func(d *dialog) {
			d.turn(140 * k)
			d.model = "claude-sonnet-5"
			d.turn(150 * k)
			d.model = "claude-haiku-4-5"
			d.turn(155 * k)
			d.model = "claude-sonnet-5"
			d.turn(775 * k)
		}},
		{"history, and then more", "compact@160000 auto_90@152000", func(d *dialog) {
			d.history = true
			d.turn(155 * k)
			d.boundary("manual", 160*k, 20*k)
			d.turn(140 * k)
			d.history = false
			d.turns(141*k, 152*k)
		}},
		{"two writers in one transcript", "auto_80@140000", func(d *dialog) {
			d.turn(20 * k)
			root := d.leaf
			d.turn(140 * k)
			one, other := d.leaf, root
			for range 6 {
				d.leaf = other
				d.turn(30 * k)
				other = d.leaf
				d.leaf = one
				d.turn(141 * k)
				one = d.leaf
			}
		}},
		{"two writers that work on", "auto_80@140000", func(d *dialog) {
			d.turn(20 * k)
			other := d.leaf
			d.turn(140 * k)
			one := d.leaf
			d.leaf = other
			d.turn(30 * k)
			other = d.leaf
			for range 3 {
				d.leaf = one
				one = d.answer(141 * k)
				d.leaf = other
				other = d.answer(31 * k)
			}
		}},
		{"two writers, and then a compaction", "auto_80@140000 compact@168000! auto_80@141000", func(d *dialog) {
			d.turn(20 * k)
			other := d.leaf
			d.turn(140 * k)
			one := d.leaf
			d.leaf = other
			d.turn(30 * k)
			d.leaf = one
			d.turn(140 * k)
			d.boundary("auto", 168*k, 20*k)
			d.turn(141 * k)
		}},
		{"two boundaries that tell nothing", "compact@117000 compact@0", func(d *dialog) {
			d.turn(117 * k)
			d.boundary("manual", 0, 0)
			d.boundary("manual", 0, 0)
		}},
		{"tokens beyond all measure", "auto_90@1099511627776", func(d *dialog) {
			d.add(d.leaf, `"type":"assistant","message":{"id":"m","model":"claude-haiku-4-5","usage":{"input_tokens":4000000000000000},"content":[]}`)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDialog()
			tt.talk(d)
			got := detect(d).triggers()
			kit.Check(t, got == tt.want, "got  %s\nwant %s", got, tt.want)
			var pieces detection
			for i := range d.lines {
				pieces.read(d, i, i+1)
				pieces.restart(t)
			}
			kit.Equal(t, "line by line", pieces.triggers(), tt.want)
		})
	}
}

// TestCheckpointsWithKnownBudgets changes the budget between the lines: thresholds already exceeded under it do not
// fire.
func TestCheckpointsWithKnownBudgets(t *testing.T) {
	const limit = 100_000
	for _, options := range []BudgetOptions{
		{Pins: map[string]int64{"": limit}},
		{Pins: map[string]int64{"claude-haiku-4-5": limit}},
		{Learned: map[string]int64{"claude-haiku-4-5": limit}},
	} {
		d := newDialog()
		d.turns(85_000, 86_000, 91_000)
		var k detection
		k.read(d, 0, 2)
		k.fold.Budget = options
		k.read(d, 2, len(d.lines))
		got, want := k.triggers(), "auto_90@91000"
		kit.Check(t, got == want, "%+v: got %q, want %q", options, got, want)
	}
}

// TestCheckpointsOfModels switches between models with about the same budget: nothing fires again.
func TestCheckpointsOfModels(t *testing.T) {
	pins := map[string]int64{"a": 150_000, "b": 140_000, "c": 156_000, "odd": 100_001}
	for _, tt := range []struct {
		models string
		tokens []int64
		want   string
	}{
		{"a b c a", []int64{125_000, 125_100, 125_200, 125_300}, "auto_80@125000"},
		{"c a", []int64{125_000, 125_100}, "auto_80@125000"},
		{"odd odd odd odd", []int64{80_000, 80_001, 90_000, 90_001}, "auto_80@80001 auto_90@90001"},
	} {
		d := newDialog()
		for i, model := range strings.Fields(tt.models) {
			d.model = model
			d.turn(tt.tokens[i])
		}
		var k detection
		k.fold.Budget.Pins = pins
		k.read(d, 0, len(d.lines))
		kit.Equal(t, tt.models, k.triggers(), tt.want)
	}
}

// TestCheckpointsInPieces generates conversations with everything that changes the tokens in use, and reads them at
// once and in pieces with restarts: the checkpoints are the same, and no threshold fires twice in an epoch.
func TestCheckpointsInPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDialog()
		var places []string
		d.turn(rapid.Int64Range(1000, 160_000).Draw(rt, "tokens"))
		d.history = rapid.Bool().Draw(rt, "history")
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				d.boundary(rapid.SampledFrom([]string{"auto", "manual"}).Draw(rt, "trigger"), rapid.Int64Range(0, 170_000).Draw(rt, "pre"), rapid.Int64Range(0, 40_000).Draw(rt, "post"))
			case 1:
				if len(places) > 0 {
					d.promptAt(rapid.SampledFrom(places).Draw(rt, "back"), "another way")
				}
			case 2:
				d.model = rapid.SampledFrom([]string{"claude-haiku-4-5", "claude-sonnet-5", "gateway"}).Draw(rt, "model")
			case 3:
				d.history = false
			default:
				places = append(places, d.leaf)
				d.turn(rapid.Int64Range(1000, 230_000).Draw(rt, "tokens"))
			}
		}
		whole := detect(d)
		var pieces detection
		for at := 0; at < len(d.lines); {
			end := rapid.IntRange(at+1, len(d.lines)).Draw(rt, "end")
			pieces.read(d, at, end)
			if at = end; rapid.Bool().Draw(rt, "restart") {
				pieces.restart(t)
			}
		}
		if diff := cmp.Diff(whole.checkpoints, pieces.checkpoints); diff != "" {
			rt.Fatalf("-whole +in pieces:\n%s", diff)
		}
		for i, m := range whole.checkpoints {
			if !whole.fresh[i] && m.Trigger != TriggerCompact {
				rt.Fatalf("history made %+v", m)
			}
		}
	})
}

// TestCheckpointsOfWindows: what a transcript says of its windows and of results that were cleared makes no thresholds.
func TestCheckpointsOfWindows(t *testing.T) {
	const k = 1000
	for _, x := range []struct {
		name, want string
		talk       func(d *dialog)
	}{
		{"results that could be cleared are not what is in use", "auto_80@140000", func(d *dialog) {
			d.turn(140 * k)
			d.add(d.leaf, `"type":"system","subtype":"microcompact_boundary","microcompactMetadata":{"trigger":"auto","preTokens":61200,"tokensSaved":23050}`)
			d.turn(118 * k)
			d.turn(141 * k)
		}},
		{"a window that was asked for", "", func(d *dialog) {
			d.add(d.leaf, `"type":"attachment","attachment":{"type":"model","identity":{"modelId":"claude-haiku-4-5[1m]"}}`)
			d.turn(134 * k)
			d.turn(155 * k)
		}},
		{"a window that was chosen, and another one", "auto_80@150000", func(d *dialog) {
			d.add(d.leaf, `"type":"system","subtype":"local_command","content":"<local-command-stdout>Set model to Haiku (1M context)</local-command-stdout>"`)
			d.turn(134 * k)
			d.add(d.leaf, `"type":"system","subtype":"local_command","content":"<local-command-stdout>Set model to Haiku</local-command-stdout>"`)
			d.turn(150 * k)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := newDialog()
			x.talk(d)
			var pieces detection
			for i := range d.lines {
				pieces.read(d, i, i+1)
				pieces.restart(t)
			}
			got := pieces.triggers()
			kit.Check(t, got == x.want, "got  %s\nwant %s", got, x.want)
		})
	}
}
