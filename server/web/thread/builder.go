package thread

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// Mode is how much of a conversation a page shows.
type Mode string

const (
	Focused     Mode = "focused"    // what was said and done
	Everything  Mode = "everything" // each line of the file
	PromptsOnly Mode = "prompts"    // what the human said
)

func ModeOf(s string) Mode {
	if m := Mode(s); m == Everything || m == PromptsOnly {
		return m
	}
	return Focused
}

// Param is the mode in an address, where the focused one is not named.
func (m Mode) Param() string {
	if m == Focused {
		return ""
	}
	return string(m)
}

const (
	// textLimit is how much of one text is shown on a page; FullText where all of it is asked for.
	textLimit = 16 << 10
	FullText  = 2 << 20
	// pageText is how much text a page shows before each one is cut to fewText.
	pageText = 512 << 10
	fewText  = 1 << 10
	// maxParse is the longest line that is looked into: decoded, it takes several times as much.
	maxParse = 10 << 20
	// maxWords is the longest text of a heading, in characters.
	maxWords = 400
)

// Builder makes items of lines.
type Builder struct {
	base    string // of addresses
	stream  Stream
	mode    Mode
	Full    bool                 // cut nothing that can be shown
	Inline  bool                 // pictures stand in the page itself
	Live    bool                 // results may still come
	Agents  map[string]AgentLink // by the task they were given
	Story   Story                // of the whole view
	Project string               // the hash of the session's project; "": the page has no links to turns of a file
	Public  bool                 // for readers who see nothing but this session: no links to anything else
	Times   map[int64][]Times    // of calls, by the line of their result, as far as they are known
	East    time.Duration        // of UTC, where the reader is; days begin there
	// Secrets finds secrets in the lines of the page, which are in SecretLines then; nil: none are looked for.
	Secrets     *Secrets
	SecretLines []SecretLine
	Seen        func(server.Line) // nil, or what is called with each line of the page; its bytes are valid meanwhile

	budget     *markup.Budget
	left       int
	calls      map[string]*Tool // of this page, by id
	folded     *Tool            // the first call whose result is in the line; nil: none
	earlier    map[string]call  // of lines before it
	early      map[string]early // results that stand before their calls, by the call's id
	fold       session.Fold     // of the lines that were read
	items      []Item
	Overflows  []*Overflow
	Hidden     int64
	at         StoredLine
	blocks     []transcript.Block // of the record
	images     []transcript.Block // of the line; nil: not looked for yet
	cut        bool
	ofLine     int            // items of the line so far
	event      *session.Event // the prompt or message that the record is; nil: none, or a copy of one
	today      string         // the day of the items so far
	permission string         // mode of permissions in the lines so far
}

func NewBuilder(base string, s Stream, m Mode) *Builder {
	return &Builder{base: base, stream: s, mode: m, budget: markup.NewBudget(), left: pageText,
		calls: map[string]*Tool{}, earlier: map[string]call{}, early: map[string]early{}}
}

// Budget returns what the builder's page may still take.
func (b *Builder) Budget() *markup.Budget { return b.budget }

// Done closes what is still open and answers all items.
func (b *Builder) Done() []Item {
	for _, t := range b.calls {
		if t.ResultLine < 0 && b.Live {
			t.State, t.Word = "running", "running"
		}
	}
	for i := range b.items {
		if it := &b.items[i]; it.Kind == "result" {
			it.Parts = slices.DeleteFunc(it.Parts, func(p Part) bool { return p.Tool != nil && p.Tool.moved })
		}
	}
	return slices.DeleteFunc(b.items, func(it Item) bool { return it.Kind == "result" && len(it.Parts) == 0 })
}

// gap says that lines from from to before to are not stored. A bare client sends no blank lines: there it means
// nothing.
func (b *Builder) gap(from, to int64, retired map[int64]bool) {
	why := "not on the server"
	if retired[from] {
		why = "retired by policy"
	}
	for i := from + 1; i < to && len(retired) > 0; i++ {
		if retired[i] != retired[i-1] { // each part says why
			b.gap(from, i, retired)
			b.gap(i, to, retired)
			return
		}
	}
	if from >= to || b.stream.Machine == nil || *b.stream.Machine == "" {
		return
	}
	words := fmt.Sprintf("Line %d is %s.", from+1, why)
	if to-from > 1 {
		words = fmt.Sprintf("Lines %d to %d are %s.", from+1, to, why)
	}
	b.items = append(b.items, Item{Line: from, Kind: "gap", Mark: "-gap", Parts: []Part{{Kind: "note", Title: words}}})
}

// generationStart says where the file was rewound: from here on its lines are of a later generation.
func (b *Builder) generationStart(l StoredLine, view server.View) {
	if l.Index == 0 {
		return
	}
	for i, s := range view.Spans {
		if i > 0 && s.From == l.Index {
			b.items = append(b.items, Item{Line: l.Index, Kind: "divider", Who: "rewrite", Mark: "-rewrite", Parts: []Part{{
				Kind: "note", Title: fmt.Sprintf("The file was rewritten from this line on (generation %d)", s.Generation),
				Link: b.elsewhere(b.stream.Path("/compare",
					"a", fmt.Sprint(view.Spans[i-1].Generation), "b", fmt.Sprint(s.Generation)))}}})
		}
	}
}

// elsewhere returns the address of another page than this session's; "" for readers who do not see it.
func (b *Builder) elsewhere(path string) string {
	if b.Public {
		return ""
	}
	return b.base + path
}

// Records returns what a line holds: one record, those of a damaged line, or none.
func Records(l server.Line) []transcript.Record {
	if l.Kind == server.Oversize || l.Size() > maxParse {
		return nil
	}
	return transcript.Records(l.Raw)
}

// line makes the items of one line.
func (b *Builder) line(l StoredLine) {
	b.at, b.ofLine, b.images = l, 0, nil
	var list []transcript.Record
	if l.Length == len(l.Raw) {
		list = Records(l.Line)
	}
	if len(list) == 0 {
		b.unread(l)
		return
	}
	b.turnedBack(l.Index)
	for _, rec := range list {
		b.event, b.permission = nil, cmp.Or(rec.PermissionMode, b.permission)
		for _, e := range b.fold.Add(l.Index, rec) {
			if e.Kind == session.PromptEvent || e.Kind == session.MessageEvent {
				b.event = &e
			}
		}
		if b.fold.Repeated() {
			b.noise(rec, Item{Line: l.Index, Time: rec.Time})
			continue
		}
		b.record(rec)
	}
}

// turnedBack says what was found out of the conversation's course before a line.
func (b *Builder) turnedBack(line int64) {
	rewinds, cleared := b.Story.before(line)
	for _, r := range rewinds {
		b.rewound(&r)
	}
	if cleared {
		b.push(Item{Line: line, Kind: "divider", Who: "cleared", Mark: "-cleared",
			Parts: []Part{{Kind: "note", Title: "Context cleared; the conversation goes on"}}})
	}
}

// unread shows a line that holds no record.
func (b *Builder) unread(l StoredLine) {
	var title string
	switch {
	case l.Kind == server.Oversize:
		title = "line too long to send; only its length and hash are stored"
	case l.Length > len(l.Raw):
		title = "very long line"
	case len(bytes.TrimSpace(l.Raw)) == 0:
		title = "blank line"
		if b.mode != Everything {
			return
		}
	default:
		title = transcript.Unread(l.Raw)
	}
	it := Item{Line: l.Index, Kind: "other", Tags: []string{title, page.Size(int64(l.Length))}}
	if len(l.Raw) > 0 {
		it.Parts = []Part{b.plain(string(l.Raw))}
		it.Parts[0].More += int64(l.Length - len(l.Raw))
	}
	b.push(it)
}

// rewound says that the conversation goes on from an earlier message.
func (b *Builder) rewound(r *session.Rewind) {
	words := "Rewound to the beginning"
	link := ""
	if r.ToLine >= 0 {
		words = fmt.Sprintf("Rewound to line %d", r.ToLine+1)
		link = b.base + b.stream.LinePath(r.ToLine)
	}
	b.push(Item{Line: b.at.Index, Kind: "divider", Who: "rewind", Mark: "-rewind",
		Parts: []Part{{Kind: "note", Title: words, Link: link}}})
}

// record makes the item of a record.
func (b *Builder) record(rec transcript.Record) {
	it := Item{Line: b.at.Index, Time: rec.Time}
	b.blocks = b.decode(rec)
	switch rec.Type {
	case "user":
		b.user(rec, it)
	case "assistant":
		b.assistant(rec, it)
	default:
		b.other(rec, it)
	}
}

// decode decodes the blocks of a record's message.
func (b *Builder) decode(rec transcript.Record) []transcript.Block {
	if rec.Message == nil {
		return nil
	}
	blocks := rec.Message.Blocks()
	b.budget.Blocks(len(blocks))
	return blocks
}

// push appends an item that is always shown.
func (b *Builder) push(it Item) {
	if !b.Inline {
		it.Link, it.Public = b.base+b.stream.Path(fmt.Sprintf("/entry/%d", it.Line)), b.Public
	}
	// Below a folded thought an offer to show more of it would stand alone; "raw" shows all of that as well.
	it.Cut = b.cut && slices.ContainsFunc(it.Parts, func(p Part) bool { return p.Kind != "think" })
	b.cut = false
	it.Left = it.Kind != "divider" && b.Story.left(it.Line)
	if it.Mark == "" {
		if b.ofLine++; b.ofLine > 1 {
			it.Mark = fmt.Sprintf("-%d", b.ofLine)
		}
	}
	it.Who, it.Model = short(it.Who), short(it.Model)
	for i := range it.Tags {
		it.Tags[i] = short(it.Tags[i])
	}
	b.budget.Piece(append(it.Tags, it.Link, it.Who, it.Model)...)
	b.trim(it.Parts)
	b.day(it.Time, it.Line)
	if n := len(b.items); n > 0 && it.Kind == "answer" && b.items[n-1].Kind == "answer" && b.items[n-1].Left == it.Left {
		it.Cont = true
	}
	b.items = append(b.items, it)
}

// noise shows a record that only the program needed, when everything is to be seen.
func (b *Builder) noise(rec transcript.Record, it Item) {
	if b.mode != Everything {
		b.Hidden++
		return
	}
	it.Kind = "other"
	it.Tags = slices.DeleteFunc([]string{rec.Type, rec.Subtype, page.Size(int64(len(b.at.Raw)))},
		func(s string) bool { return s == "" })
	if p := rec.Preview(); p != "" && p != rec.Type && p != strings.TrimSpace(rec.Type+" "+rec.Subtype) {
		it.Parts = []Part{{Kind: "note", Title: p}}
	}
	b.push(it)
}

// between returns how long something took; 0 when that is not known.
func between(from, to time.Time) time.Duration {
	if from.IsZero() || !to.After(from) {
		return 0
	}
	return to.Sub(from)
}
