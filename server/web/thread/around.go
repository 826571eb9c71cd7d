package thread

import (
	"cmp"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// before takes lines that are not shown, to know their calls and the prompts that wait in the queue.
func (b *Builder) before(w Window) {
	left := aroundBlocks
	for _, l := range w.Lines {
		for _, rec := range Records(l.Line) {
			b.fold.Add(l.Index, rec)
			b.permission = cmp.Or(rec.PermissionMode, b.permission)
			if rec.Message == nil {
				continue
			}
			if left -= len(rec.Message.RawBlocks()); left < 0 {
				return
			}
			if rec.Type != "assistant" {
				continue
			}
			for _, x := range rec.Message.Blocks() {
				if x.Kind == transcript.ToolUseBlock {
					b.earlier[x.ToolID] = call{Line: l.Index, Name: x.ToolName, Input: x.Input, Cwd: rec.Cwd}
				}
			}
		}
	}
}

// fits reports whether there is space for a line that the page may also leave to the next one.
func (b *Builder) fits(l StoredLine) bool {
	need := len(l.Raw)
	if !b.Full {
		need = min(need, 4*textLimit)
	}
	return b.budget.Blocks(0) && b.budget.Left() > 2*need
}

// add makes items of a window's lines, as many as there is space for, and ends the window behind them.
func (b *Builder) add(w *Window, view server.View) {
	next := w.From
	for i, l := range w.Lines {
		if i > 0 && !b.fits(l) {
			w.Lines, w.To = w.Lines[:i], l.Index
			break
		}
		b.gap(next, l.Index, w.retired)
		next = l.Index + 1
		b.generationStart(l, view)
		items := len(b.items)
		b.folded = nil
		b.line(l)
		if b.folded != nil && len(b.items) == items {
			b.folded.Anchor = Item{Line: l.Index}.ID()
		}
		b.markSecrets(l, items)
	}
	b.gap(next, w.To, w.retired)
}

// after takes lines behind the page, for results of its calls.
func (b *Builder) after(w Window) {
	for _, l := range w.Lines {
		if !b.waiting() {
			return
		}
		b.at, b.images = l, nil
		for _, rec := range Records(l.Line) {
			if rec.Message == nil || !b.fits(l) {
				continue
			}
			b.blocks = b.decode(rec)
			for _, x := range b.blocks {
				if t := b.calls[x.ToolID]; x.Kind == transcript.ToolResultBlock && t != nil && t.ResultLine < 0 {
					b.finish(t, rec, x)
				}
			}
		}
	}
}

func (b *Builder) waiting() bool {
	for _, t := range b.calls {
		if t.ResultLine < 0 {
			return true
		}
	}
	return false
}
