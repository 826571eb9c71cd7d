package session

import (
	"cmp"

	"github.com/ccship/ccship/transcript"
)

// Sources of a budget: which rule determined its limit, or its window if the limit follows from that.
const (
	ConfiguredBudget = "configured" // set by the user
	ModelBudget      = "model"      // the model's native window, or the larger one that the transcript says was asked for
	SeenBudget       = "seen"       // more than 200 000 tokens were in use
	BoundaryBudget   = "boundary"   // an automatic compaction of this session
	LearnedBudget    = "learned"    // automatic compactions of other sessions with this model
	DerivedBudget    = "derived"    // a compaction of this session shows which window it has
	DefaultBudget    = "default"    // nothing is known: 200 000
)

// BudgetOptions is what is known from outside the transcript. The zero value is nothing.
type BudgetOptions struct {
	Learned map[string]int64 // by model, the fewest tokens in use at an automatic compaction; may be nil; only read
	Stated  int64            // window that was asked for, as far as the transcript says
	// Pins are limits set by the user, by model; "" applies to all models and takes precedence. A pin above the
	// inferred window means that the window is larger. May be nil; only read.
	Pins map[string]int64
}

// Budget is how many tokens a conversation can hold. The window is not in the transcript: it is inferred.
type Budget struct {
	Window, Limit int64 // Limit is where compaction really happens
	Source        string
}

// reserve is what Claude Code keeps free before it compacts: space for an answer, and 13 000 tokens.
const reserve = 20_000 + 13_000

// BudgetFor determines a model's budget. most is the highest number of tokens in use so far, boundary the lowest at an
// automatic compaction, 0 if there was none. A rule that contradicts these observations is skipped.
func BudgetFor(model string, most, boundary int64, o BudgetOptions) Budget {
	size, source := window(model, most, boundary, o)
	pin := o.Pins[""]
	if pin <= 0 {
		pin = o.Pins[model]
	}
	if pin > 0 {
		return Budget{max(size, pin), pin, ConfiguredBudget}
	}
	limit, by := limit(size, model, most, boundary, o)
	return Budget{size, limit, cmp.Or(by, source)}
}

func window(model string, most, boundary int64, o BudgetOptions) (int64, string) {
	native := transcript.NativeWindow(model)
	switch {
	case o.Stated > 0 && o.Stated >= most:
		return o.Stated, ModelBudget
	case native > 0 && native >= most:
		return native, ModelBudget
	case most > transcript.StandardWindow:
		return transcript.LargeWindow, SeenBudget
	case boundary > transcript.StandardWindow-reserve-transcript.StandardWindow/10:
		return transcript.StandardWindow, DerivedBudget
	}
	return transcript.StandardWindow, DefaultBudget
}

// limit returns where compaction happens, and the rule that says so; "" if it follows from the window.
func limit(window int64, model string, most, boundary int64, o BudgetOptions) (int64, string) {
	derived := max(window-reserve, window/2)
	// A limit that was exceeded by far is no longer the limit. One tool result exceeds it by a little; so it did when a
	// compaction followed.
	holds := func(limit int64) bool {
		compacted := overshoots(boundary, limit) && most <= boundary+boundary/10
		return limit > 0 && limit <= window && (most <= limit+limit/10 || compacted)
	}
	learned := o.Learned[model]
	if !holds(learned) {
		learned = 0
	}
	switch {
	case learned > 0 && (!holds(boundary) || overshoots(boundary, learned)):
		return learned, LearnedBudget
	case holds(boundary) && (boundary <= derived+derived/50 || !overshoots(boundary, derived)):
		return boundary, BoundaryBudget
	}
	return derived, ""
}

// overshoots reports whether a compaction may have come only at a boundary though the limit was lower: a tool result
// can jump over it. Farther above it the limit is another one.
func overshoots(boundary, limit int64) bool { return boundary > limit && boundary <= limit+limit/4 }
