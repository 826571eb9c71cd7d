package thread

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript/session"
)

// MaxPrompts is how many prompts are listed at once.
const MaxPrompts = 1000

// Prompt is a line of an outline.
type Prompt struct {
	Line int64
	URL  string
	Time time.Time
	Kind string // of what is no prompt, as package timeline names it; ""
	Text string
	Tag  string
}

// Prompts lists what the human wrote, from line from on, at most MaxPrompts. No more of the file than one line is in
// memory at a time. more: the list ends before the file. URLs are paths below the viewer's base.
func Prompts(ctx context.Context, snap server.Snapshot, view server.View, s Stream,
	from int64) (out []Prompt, more bool, err error) {
	var fold session.Fold
	add := func(e *session.Event, beside bool) error {
		if len(out) == MaxPrompts {
			return errFull
		}
		row := Prompt{Line: e.Line, URL: s.LinePath(e.Line), Time: e.Time,
			Text: strings.Clone(page.OneLine(e.Text, 400))}
		switch {
		case e.Kind == session.ReplyEvent:
			row.Tag = "reply"
		case e.From != "":
			row.Tag = "via " + e.From
		case e.Queued && !beside:
			row.Tag = "queued"
		}
		out = append(out, row)
		return nil
	}
	spans := view.Between(max(0, from-aroundLines), view.Total)
	err = EachHead(ctx, snap, spans, func(l server.Line, _ int64) (err error) {
		for _, rec := range Records(l) {
			for _, e := range fold.Add(l.Index, rec) {
				if (e.Kind == session.PromptEvent || e.Kind == session.ReplyEvent) && e.Line >= from && err == nil {
					err = add(&e, rec.SourceID != "")
				}
			}
		}
		return err
	})
	return out, errors.Is(err, errFull), notFull(err)
}
