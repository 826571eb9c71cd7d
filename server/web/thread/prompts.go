package thread

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/format"
)

// MaxPrompts is how many prompts are listed at once.
const MaxPrompts = 1000

type Prompt struct {
	Line int64
	URL  string
	Time time.Time
	Text string
	Tag  string
}

// Prompts lists what the human wrote, from line from on, at most MaxPrompts. No more of the file than one line is in
// memory at a time. more: the list ends before the file. URLs are paths below the viewer's base.
func Prompts(ctx context.Context, snap server.Snapshot, view server.View, s Stream,
	from int64) (out []Prompt, more bool, err error) {
	for _, span := range view.Between(from, view.Total) {
		err := snap.Lines(ctx, span, func(l server.Line) error {
			for _, rec := range Records(l) {
				text, ok := rec.Prompt()
				if !ok {
					continue
				}
				if len(out) == MaxPrompts {
					return errFull
				}
				row := Prompt{Line: l.Index, URL: s.LinePath(l.Index), Time: rec.Time,
					Text: strings.Clone(format.OneLine(text, 400))}
				if rec.Queued != "" {
					row.Tag = "queued"
				}
				out = append(out, row)
			}
			return nil
		})
		if errors.Is(err, errFull) {
			return out, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return out, false, nil
}
