package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
)

// mostClear is how many transcripts are kept by name; the others are counted.
const mostClear = 100

// inClear is which transcripts servers have with secrets in clear, by the last comparison.
type inClear struct {
	Paths []string `json:"paths"` // at most mostClear
	Total int      `json:"total"`
}

// clearList keeps inClear in the state. Safe for concurrent use.
type clearList struct {
	kept *state.Persisted[inClear]
}

// loadClear reads the list. One that cannot be read begins anew: the next comparison makes it again.
func loadClear(ctx context.Context, db *state.DB) (clearList, error) {
	kept, err := state.LoadPersisted[inClear](ctx, db, "sent_in_clear")
	if err != nil && !errors.Is(err, state.ErrUnreadable) {
		return clearList{}, fmt.Errorf("load what was sent in clear: %w", err)
	}
	return clearList{kept}, nil
}

// note adds transcripts; first: those known before do not count.
func (l clearList) note(ctx context.Context, paths []string, first bool) error {
	return l.kept.Change(ctx, func(old inClear) (inClear, bool) {
		if first {
			next := inClear{Paths: slices.Clone(paths[:min(len(paths), mostClear)]), Total: len(paths)}
			return next, next.Total != old.Total || !slices.Equal(next.Paths, old.Paths)
		}
		next := inClear{Paths: slices.Concat(old.Paths, paths), Total: old.Total + len(paths)}
		next.Paths = next.Paths[:min(len(next.Paths), mostClear)]
		return next, len(paths) > 0
	})
}

// advice names transcripts that a server has with secrets in clear.
func (l clearList) advice() []control.Advice {
	known := l.kept.Get()
	if len(known.Paths) == 0 {
		return nil
	}
	text := "sent before secrets were masked: " + known.Paths[0]
	if more := known.Total - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return []control.Advice{{Kind: "secrets_in_clear", Text: text,
		Hint: "`ccship redact apply --forget-old --yes` has them masked on the server"}}
}
