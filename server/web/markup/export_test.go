package markup

import "time"

// Colours is a budget with space for everything but so much colour.
func Colours(bytes int, patience time.Duration) *Budget {
	p := NewBudget()
	p.html, p.code, p.tokens, p.marks, p.patience = 100<<20, bytes, 1<<20, 100<<20, patience
	return p
}
