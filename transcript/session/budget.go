package session

import "github.com/ccship/ccship/transcript"

// BudgetSource says which rule determined a budget.
type BudgetSource uint8

const (
	UnknownBudget     BudgetSource = iota
	StatusLineBudget               // the status line reported the window
	ConfiguredBudget               // set by the user
	ModelBudget                    // the model's native window
	SeenBudget                     // more than 200 000 tokens were in use
	BoundaryBudget                 // an automatic compaction of this session
	LearnedBudget                  // automatic compactions of other sessions with this model
	DerivedBudget                  // computed from the window
	DefaultBudget                  // nothing is known: 200 000
	NoCompactionLimit              // automatic compaction is off: the limit is the window
	StatedBudget                   // the transcript says that a larger one was asked for
)

// BudgetOptions is what is known from outside the transcript. The zero value is nothing.
type BudgetOptions struct {
	StatusLine int64         // context_window_size
	Window     int64         // configured
	Limit      int64         // configured
	Learned    LearnedLimits // may be nil; only read
	NoCompact  bool          // automatic compaction is switched off
	Stated     int64         // window that was asked for, as far as the transcript says
	// Pins are limits set by the user, by model; "" applies to all models and takes precedence. A pin above the
	// inferred window means that the window is larger. May be nil; only read.
	Pins map[string]int64
}

// Budget is how many tokens a conversation can hold. The window is not in the transcript: it is inferred.
type Budget struct {
	Window, Limit       int64 // Limit is where compaction really happens
	WindowFrom, LimitBy BudgetSource
}

// LearnedLimits holds, by model, the fewest tokens in use at an automatic compaction.
type LearnedLimits map[string]int64

// reserve is what Claude Code keeps free before it compacts: space for an answer, and 13 000 tokens.
const reserve = 20_000 + 13_000

// BudgetFor determines a model's budget. most is the highest number of tokens in use so far, boundary the lowest at an
// automatic compaction, 0 if there was none. A rule that contradicts these observations is skipped.
func BudgetFor(model string, most, boundary int64, o BudgetOptions) Budget {
	var b Budget
	b.Window, b.WindowFrom = window(model, most, boundary, o)
	if pin := o.pin(model); pin > 0 {
		if pin > b.Window {
			b.Window, b.WindowFrom = pin, ConfiguredBudget
		}
		b.Limit, b.LimitBy = pin, ConfiguredBudget
		return b
	}
	b.Limit, b.LimitBy = limit(b.Window, model, most, boundary, o)
	return b
}

func (o *BudgetOptions) pin(model string) int64 {
	if pin := o.Pins[""]; pin > 0 {
		return pin
	}
	return o.Pins[model]
}

func window(model string, most, boundary int64, o BudgetOptions) (int64, BudgetSource) {
	native := transcript.NativeWindow(model)
	switch {
	case o.StatusLine > 0:
		return o.StatusLine, StatusLineBudget
	case o.Window > 0:
		return o.Window, ConfiguredBudget
	case o.Stated > 0 && o.Stated >= most:
		return o.Stated, StatedBudget
	case native > 0 && native >= most:
		return native, ModelBudget
	case most > transcript.StandardWindow:
		return transcript.LargeWindow, SeenBudget
	case boundary > transcript.StandardWindow-reserve-transcript.StandardWindow/10:
		return transcript.StandardWindow, BoundaryBudget
	}
	return transcript.StandardWindow, DefaultBudget
}

func limit(window int64, model string, most, boundary int64, o BudgetOptions) (int64, BudgetSource) {
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
	case o.Limit > 0:
		return min(o.Limit, window), ConfiguredBudget
	case o.NoCompact:
		return window, NoCompactionLimit
	case learned > 0 && (!holds(boundary) || overshoots(boundary, learned)):
		return learned, LearnedBudget
	case holds(boundary) && (boundary <= derived+derived/50 || !overshoots(boundary, derived)):
		return boundary, BoundaryBudget
	}
	return derived, DerivedBudget
}

// overshoots reports whether a compaction may have come only at a boundary though the limit was lower: a tool result
// can jump over it. Farther above it the limit is another one.
func overshoots(boundary, limit int64) bool { return boundary > limit && boundary <= limit+limit/4 }

// Learn records an automatic compaction of a session with this model. Manual compactions and those without numbers
// teach nothing.
func (l LearnedLimits) Learn(model string, c transcript.Compact) {
	if model == "" || c.Micro || c.Trigger != "auto" || c.Pre < 1000 {
		return
	}
	if known, ok := l[model]; !ok || c.Pre < known {
		l[model] = c.Pre
	}
}
