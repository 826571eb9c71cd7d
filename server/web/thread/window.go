package thread

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

const (
	// PageLines is how many lines of a file one page shows, and pageBytes where it ends before that.
	PageLines = 300
	pageBytes = 4 << 20
	// A page looks around itself: behind its end for results of its calls, before its beginning for calls of its
	// results.
	aroundLines = 200
	aroundBytes = 1 << 20
	// aroundBlocks is how many blocks before its beginning are decoded.
	aroundBlocks = 2000
)

// StoredLine is a line as it is stored. Of one that is too long to be looked into, the bytes are the beginning.
type StoredLine struct {
	server.Line
	Generation int64
	Length     int // of the whole line, in bytes
}

// Heads returns a span whose readers need no more than the beginning of a line that is too long to be looked into.
func Heads(s server.Span) server.Span {
	s.Most = maxParse
	return s
}

// stored copies a line.
func stored(l server.Line, generation int64) StoredLine {
	x := StoredLine{l, generation, int(l.Size())}
	if x.Length > maxParse {
		x.Raw = x.Raw[:min(len(x.Raw), FullText)]
	}
	x.Raw = bytes.Clone(x.Raw)
	return x
}

// Window is the stored lines of a view from From to before To.
type Window struct {
	Lines    []StoredLine
	From, To int64
	retired  map[int64]bool // lines that a rule of retention removed
}

var errFull = errors.New("window full")

// notFull is err, unless it says that a reader has enough.
func notFull(err error) error {
	if errors.Is(err, errFull) {
		return nil
	}
	return err
}

// lineRange is lines from from to before to, until they have more than bytes together; the first counts whatever it
// has.
type lineRange struct {
	from, to int64
	bytes    int
	seen     func(server.Line) // nil, or what is called with each of them, whole
}

// ReadLine calls fn with one line, whose bytes are fn's until it returns: the beginning of one that is too long to be
// looked into. server.ErrNotFound when the view has none of that number.
func ReadLine(ctx context.Context, snap server.Snapshot, view server.View, line int64,
	fn func(server.Line) error) error {
	found := false
	err := EachHead(ctx, snap, view.Between(line, min(line+1, view.Total)), func(l server.Line, _ int64) error {
		found = true
		return fn(l)
	})
	if err != nil {
		return err
	}
	if !found {
		return server.ErrNotFound
	}
	return nil
}

// readWindow reads a range of lines.
func readWindow(ctx context.Context, snap server.Snapshot, view server.View, r lineRange) (Window, error) {
	w := Window{From: r.from, To: max(r.from, min(r.to, view.Total))}
	read := 0
	err := EachHead(ctx, snap, view.Between(w.From, w.To), func(l server.Line, generation int64) error {
		if read += len(l.Raw); read > r.bytes && len(w.Lines) > 0 {
			w.To = l.Index
			return errFull
		}
		if r.seen != nil {
			r.seen(l)
		}
		w.Lines = append(w.Lines, stored(l, generation))
		return nil
	})
	return w, notFull(err)
}

// View returns the view of the generation asked for, else of the newest. server.ErrNotFound when there is none of it.
func (s Stream) View(snap server.Snapshot) (server.View, error) {
	if s.Generation >= 0 {
		return server.ViewOf(snap.Generations(), s.Generation)
	}
	return server.NewestView(snap)
}

// Fill reads a window with what is around it into b.
func (b *Builder) Fill(ctx context.Context, snap server.Snapshot, view server.View, from, to int64) (Window, error) {
	before, err := readWindow(ctx, snap, view, lineRange{from: max(0, from-aroundLines), to: from, bytes: aroundBytes})
	if err != nil {
		return Window{}, err
	}
	b.before(before)
	w, err := readWindow(ctx, snap, view, lineRange{from, to, pageBytes, b.Seen})
	if err != nil {
		return w, err
	}
	if w.retired, err = retiredIn(ctx, snap, view, w); err != nil {
		return w, err
	}
	b.add(&w, view)
	if b.waiting() && w.To < view.Total {
		after, err := readWindow(ctx, snap, view, lineRange{from: w.To, to: w.To + aroundLines, bytes: aroundBytes})
		if err != nil {
			return w, err
		}
		b.after(after)
	}
	return w, nil
}

// retiredIn returns the lines of a window that a rule of retention removed.
func retiredIn(ctx context.Context, snap server.Snapshot, view server.View, w Window) (map[int64]bool, error) {
	if int64(len(w.Lines)) == w.To-w.From {
		return nil, nil
	}
	out := map[int64]bool{}
	for _, span := range view.Between(w.From, w.To) {
		err := snap.Retired(ctx, span, false, func(r *server.RetiredRun) error {
			for _, l := range r.Lines {
				if span.From <= l.Index && l.Index < span.To {
					out[l.Index] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for retired lines: %w", err)
		}
	}
	return out, nil
}

// EachLine calls fn with each stored line of a view, whole.
func EachLine(ctx context.Context, snap server.Snapshot, view server.View, fn func(server.Line) error) error {
	return eachLine(ctx, snap, view.Between(0, view.Total), 0, func(l server.Line, _ int64) error { return fn(l) })
}

// EachHead calls fn with each stored line of spans and its generation. Of a line that is too long to be looked into it
// is the beginning.
func EachHead(ctx context.Context, snap server.Snapshot, spans []server.Span,
	fn func(l server.Line, generation int64) error) error {
	return eachLine(ctx, snap, spans, maxParse, fn)
}

// eachLine calls fn with the first most bytes of each stored line of spans, all of them when most is 0.
func eachLine(ctx context.Context, snap server.Snapshot, spans []server.Span, most int64,
	fn func(l server.Line, generation int64) error) error {
	for _, span := range spans {
		span.Most = most
		if err := snap.Lines(ctx, span, func(l server.Line) error { return fn(l, span.Generation) }); err != nil {
			return err
		}
	}
	return nil
}

// EachWindow makes items of a whole view, a window at a time.
func EachWindow(ctx context.Context, snap server.Snapshot, view server.View, fn func([]Item) error) error {
	x := snap.Session()
	story, err := wholeStory(ctx, snap, view)
	if err != nil {
		return err
	}
	for at := int64(0); at < view.Total; {
		b := NewBuilder("", Stream{ID: x.SessionID, Machine: &x.Machine, Generation: -1}, Focused)
		b.Full, b.Inline, b.Story = true, true, story
		w, err := b.Fill(ctx, snap, view, at, at+PageLines)
		if err != nil {
			return err
		}
		if err := fn(b.Done()); err != nil {
			return fmt.Errorf("write items: %w", err)
		}
		if at = max(w.To, at+1); len(w.Lines) > 0 {
			continue
		}
		// A line number may be anything up to 2^53: what is not stored is stepped over, not walked through.
		if at, err = nextStored(ctx, snap, view, at); err != nil {
			return err
		}
	}
	return nil
}

// nextStored returns the first line from from on that is stored, or the view's end.
func nextStored(ctx context.Context, snap server.Snapshot, view server.View, from int64) (int64, error) {
	at := view.Total
	err := eachLine(ctx, snap, view.Between(from, view.Total), 1, func(l server.Line, _ int64) error {
		at = l.Index
		return errFull
	})
	return at, notFull(err)
}

// Offset returns where in the file a line begins; -1 when lines before it are not stored.
func Offset(ctx context.Context, snap server.Snapshot, view server.View, line int64) (int64, error) {
	at, next := int64(0), int64(0)
	err := eachLine(ctx, snap, view.Between(0, line), 1, func(l server.Line, _ int64) error {
		if l.Kind == server.Oversize {
			return errFull
		}
		next++
		at += l.Size() + 1
		return nil
	})
	if notFull(err) != nil {
		return -1, err
	}
	if next != line {
		return -1, nil
	}
	return at, nil
}

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
