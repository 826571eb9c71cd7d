package web

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/format"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// mode is how much of a conversation a page shows.
type mode string

const (
	focused    mode = "focused"    // what was said and done
	everything mode = "everything" // each line of the file
	promptOnly mode = "prompts"    // what the human said
)

func modeOf(s string) mode {
	if m := mode(s); m == everything || m == promptOnly {
		return m
	}
	return focused
}

const (
	// textLimit is how much of one text is shown on a page; fullText where all of it is asked for.
	textLimit = 16 << 10
	fullText  = 2 << 20
	// pageText is how much text a page shows before each one is cut to fewText.
	pageText = 512 << 10
	fewText  = 1 << 10
	// brushBytes is how much code of a page is coloured, and brushTime how long that may take at most.
	brushBytes = 192 << 10
	brushTime  = 3 * time.Second
	// maxParse is the longest line that is looked into.
	maxParse = 32 << 20
)

// builder makes items of lines.
type builder struct {
	base   string // of addresses
	stream stream
	mode   mode
	full   bool                 // cut nothing that can be shown
	inline bool                 // pictures stand in the page itself
	live   bool                 // results may still come
	agents map[string]agentLink // by the task they were given

	brush   *markup.Brush
	room    int
	calls   map[string]*tool // of this page, by id
	earlier map[string]call  // of lines before it
	tree    session.Tree
	items   []item
	spills  []*spilled
	hidden  int64
	at      rawLine
	cut     bool
	ofLine  int // items of the line so far
}

func newBuilder(base string, s stream, m mode) *builder {
	return &builder{base: base, stream: s, mode: m, brush: markup.NewBrush(brushBytes, brushTime), room: pageText, calls: map[string]*tool{}, earlier: map[string]call{}}
}

// before takes lines that are not shown, to know their calls and the place in the conversation.
func (b *builder) before(w window) {
	for _, l := range w.Lines {
		for _, rec := range records(l.Line) {
			b.tree.Add(l.Index, &rec)
			if rec.Type != "assistant" || rec.Message == nil {
				continue
			}
			for _, x := range rec.Message.Blocks() {
				if x.Kind == transcript.ToolUseBlock {
					b.earlier[x.ToolID] = call{l.Index, x.ToolName, x.Input, rec.Cwd}
				}
			}
		}
	}
}

// add makes items of a window's lines.
func (b *builder) add(w window, view server.View) {
	next := w.From
	for _, l := range w.Lines {
		b.gap(next, l.Index)
		next = l.Index + 1
		b.seam(l, view)
		b.line(l)
	}
	b.gap(next, w.To)
}

// after takes lines behind the page, for results of its calls.
func (b *builder) after(w window) {
	for _, l := range w.Lines {
		if !b.waiting() {
			return
		}
		b.at = l
		for _, rec := range records(l.Line) {
			if rec.Type != "user" || rec.Message == nil {
				continue
			}
			for _, x := range rec.Message.Blocks() {
				if t := b.calls[x.ToolID]; x.Kind == transcript.ToolResultBlock && t != nil && t.ResultLine < 0 {
					b.finish(t, rec, x)
				}
			}
		}
	}
}

func (b *builder) waiting() bool {
	for _, t := range b.calls {
		if t.ResultLine < 0 {
			return true
		}
	}
	return false
}

// done closes what is still open and answers all items.
func (b *builder) done() []item {
	for _, t := range b.calls {
		if t.ResultLine < 0 && b.live {
			t.State, t.Word = "running", "running"
		}
	}
	return b.items
}

// gap says that lines from from to before to are not stored. A bare client sends no blank lines: there it means nothing.
func (b *builder) gap(from, to int64) {
	if from >= to || b.stream.Machine == nil || *b.stream.Machine == "" {
		return
	}
	words := fmt.Sprintf("Line %d is not on the server.", from+1)
	if to-from > 1 {
		words = fmt.Sprintf("Lines %d to %d are not on the server.", from+1, to)
	}
	b.items = append(b.items, item{Line: from, Kind: "gap", Mark: "-gap", Parts: []part{{Kind: "note", Title: words}}})
}

// seam says where the file was rewound: from here on its lines are of a later generation.
func (b *builder) seam(l rawLine, view server.View) {
	if l.Index == 0 {
		return
	}
	for i, s := range view.Spans {
		if i > 0 && s.From == l.Index {
			b.items = append(b.items, item{Line: l.Index, Kind: "band", Who: "seam", Mark: "-seam", Parts: []part{{Kind: "note",
				Title: fmt.Sprintf("The file was rewritten from here on (generation %d)", s.Generation),
				Link:  b.base + b.stream.path("/compare", "a", fmt.Sprint(view.Spans[i-1].Generation), "b", fmt.Sprint(s.Generation))}}})
		}
	}
}

// records is what a line holds: one record, those of a damaged line, or none.
func records(l server.Line) []transcript.Record {
	if l.Kind == server.Oversize || len(l.Raw) > maxParse {
		return nil
	}
	switch s := transcript.Scan(l.Raw); s.Shape {
	case transcript.Object, transcript.Reserved:
		return []transcript.Record{transcript.Parse(l.Raw[s.Start:s.End])}
	case transcript.Blank:
		return nil
	}
	var out []transcript.Record
	for _, r := range transcript.Recover(l.Raw) {
		out = append(out, transcript.Parse(r))
	}
	return out
}

// line makes the items of one line.
func (b *builder) line(l rawLine) {
	b.at, b.ofLine = l, 0
	list := records(l.Line)
	if len(list) == 0 {
		b.unread(l)
		return
	}
	for _, rec := range list {
		if rewind, _ := b.tree.Add(l.Index, &rec); rewind != nil {
			b.rewound(rewind)
		}
		b.record(rec)
	}
}

// unread shows a line that holds no record.
func (b *builder) unread(l rawLine) {
	title := "damaged line"
	switch {
	case l.Kind == server.Oversize:
		title = "a line too long to be sent; only its length and sum are here"
	case len(l.Raw) > maxParse:
		title = "very long line"
	case len(bytes.TrimSpace(l.Raw)) == 0:
		title = "blank line"
		if b.mode != everything {
			return
		}
	}
	head, more := b.shown(string(l.Raw))
	it := item{Line: l.Index, Kind: "other", Tags: []string{title, format.Size(int64(len(l.Raw)))}}
	if head != "" {
		it.Parts = []part{{Kind: "text", HTML: markup.Text(head), More: more}}
	}
	b.push(it)
}

// rewound says that the conversation goes on from an earlier message, and marks what was left.
func (b *builder) rewound(r *session.Rewind) {
	words := "Rewound to the beginning"
	link := ""
	if r.ToLine >= 0 {
		words = fmt.Sprintf("Rewound to line %d", r.ToLine+1)
		link = b.base + b.stream.line(r.ToLine)
	}
	for i := range b.items {
		if b.items[i].Line > r.ToLine && b.items[i].Line <= r.FromLine && b.items[i].Kind != "band" {
			b.items[i].Left = true
		}
	}
	b.push(item{Line: b.at.Index, Kind: "band", Who: "rewind", Mark: "-rewind", Parts: []part{{Kind: "note", Title: words, Link: link}}})
}

// record makes the item of a record.
func (b *builder) record(rec transcript.Record) {
	it := item{Line: b.at.Index, Time: rec.Time}
	switch rec.Type {
	case "user":
		b.user(rec, it)
	case "assistant":
		b.assistant(rec, it)
	default:
		b.other(rec, it)
	}
}

// push appends an item that is always shown.
func (b *builder) push(it item) {
	if !b.inline {
		it.Link = b.base + b.stream.path(fmt.Sprintf("/entry/%d", it.Line))
	}
	// Below a folded thought an offer to show more of it would stand alone; "raw" shows all of that as well.
	it.Cut = b.cut && slices.ContainsFunc(it.Parts, func(p part) bool { return p.Kind != "think" })
	b.cut = false
	if it.Mark == "" {
		if b.ofLine++; b.ofLine > 1 {
			it.Mark = fmt.Sprintf("-%d", b.ofLine)
		}
	}
	if n := len(b.items); n > 0 && it.Kind == "answer" && b.items[n-1].Kind == "answer" && b.items[n-1].Left == it.Left {
		it.Cont = true
	}
	b.items = append(b.items, it)
}

// noise shows a record that only the program needed, when everything is to be seen.
func (b *builder) noise(rec transcript.Record, it item) {
	if b.mode != everything {
		b.hidden++
		return
	}
	it.Kind = "other"
	it.Tags = slices.DeleteFunc([]string{rec.Type, rec.Subtype, format.Size(int64(len(b.at.Raw)))}, func(s string) bool { return s == "" })
	if p := rec.Preview(); p != "" && p != rec.Type && p != strings.TrimSpace(rec.Type+" "+rec.Subtype) {
		it.Parts = []part{{Kind: "note", Title: p}}
	}
	b.push(it)
}

// shown is as much of a text as there is room for, and how many bytes are left out.
func (b *builder) shown(s string) (string, int64) {
	limit := textLimit
	switch {
	case b.full:
		limit = fullText
	case b.room <= 0:
		limit = fewText
	}
	head, rest := format.Cut(s, limit)
	b.room -= len(head)
	b.cut = b.cut || rest > 0
	return head, rest
}

func (b *builder) markdown(s string) part {
	head, more := b.shown(s)
	return part{Kind: "md", HTML: b.brush.Markdown(head), More: more}
}

func (b *builder) plain(s string) part {
	head, more := b.shown(s)
	return part{Kind: "text", HTML: markup.Text(head), More: more}
}

func (b *builder) code(s, language string) part {
	head, more := b.shown(s)
	return part{Kind: "code", HTML: b.brush.Code(head, language), More: more}
}

func (b *builder) terminal(s string) part {
	head, more := b.shown(s)
	return part{Kind: "text", HTML: markup.ANSI(head), More: more}
}

// between is how long something took; 0 when that is not known.
func between(from, to time.Time) time.Duration {
	if from.IsZero() || !to.After(from) {
		return 0
	}
	return to.Sub(from)
}
