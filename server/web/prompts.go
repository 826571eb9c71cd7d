package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/format"
)

// promptPage is how many prompts are listed at once.
const promptPage = 1000

// outline is the page of a conversation's prompts, or without a page around it its table of contents.
type outline struct {
	frame
	header
	Modes   []choice
	Prompts []promptRow
	Next    string
}

type promptRow struct {
	Line int64
	URL  string
	Time time.Time
	Text string
	Tag  string
}

// prompts is GET /sessions/{id}/prompts?after&bare: what the human said, one line each.
func (v *Viewer) prompts(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	q := r.URL.Query()
	p := outline{}
	err := v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		x := snap.Session()
		s.Machine = &x.Machine
		last, err := v.outline(r.Context(), &p, snap, view, s, number(q.Get("after"), -1)+1)
		if err != nil {
			return err
		}
		if last >= 0 {
			p.Next = v.Base + s.path("/prompts", "after", strconv.FormatInt(last, 10))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if q.Get("bare") != "" {
		v.render(w, http.StatusOK, "outline.html", p)
		return nil
	}
	if err := v.head(r.Context(), who, &p.header, &s); err != nil {
		return err
	}
	if err := v.papersOf(r.Context(), who, &p.header, s, fewCheckpoints); err != nil {
		return err
	}
	p.frame = v.frame(r, who, p.Heading, "sessions")
	p.Modes = modes(v.Base, s, promptOnly, 0)
	v.render(w, http.StatusOK, "prompts.html", p)
	return nil
}

// outline reads lines from from on for prompts. It answers the last line it listed when there may be more, else -1. No
// more of the file than one line is in memory at a time.
func (v *Viewer) outline(ctx context.Context, p *outline, snap server.Snapshot, view server.View, s stream, from int64) (int64, error) {
	for _, span := range view.Between(from, view.Total) {
		err := snap.Lines(ctx, span, func(l server.Line) error {
			for _, rec := range records(l) {
				text, ok := rec.Prompt()
				if !ok {
					continue
				}
				if len(p.Prompts) == promptPage {
					return errFull
				}
				row := promptRow{Line: l.Index, URL: v.Base + s.line(l.Index), Time: rec.Time, Text: strings.Clone(format.OneLine(text, 400))}
				if rec.Queued != "" {
					row.Tag = "queued"
				}
				p.Prompts = append(p.Prompts, row)
			}
			return nil
		})
		if errors.Is(err, errFull) {
			return p.Prompts[len(p.Prompts)-1].Line, nil
		}
		if err != nil {
			return -1, err
		}
	}
	return -1, nil
}
