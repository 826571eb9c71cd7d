package thread

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// limit returns how much of a text is shown now, in bytes.
func (b *Builder) limit() int {
	switch {
	case b.Full:
		return FullText
	case b.left <= 0:
		return fewText
	}
	return textLimit
}

// shown is as much of a text as there is space for, and how many bytes are left out.
func (b *Builder) shown(s string) (string, int64) {
	head, rest := page.Cut(s, b.limit())
	b.left -= len(head)
	b.cut = b.cut || rest > 0
	return head, rest
}

// renderer makes HTML of a text, and says how many bytes of it are left out.
type renderer func(string) (template.HTML, int64)

// part returns a text as far as there is space for it.
func (b *Builder) part(kind, s string, render renderer) Part {
	if !b.budget.Piece() {
		b.cut = true
		return Part{Kind: kind, More: int64(len(s))}
	}
	head, more := b.shown(s)
	html, left := render(head)
	b.cut = b.cut || left > 0
	return Part{Kind: kind, HTML: html, More: more + left}
}

func (b *Builder) markdown(s string) Part { return b.part("md", s, b.budget.Markdown) }

func (b *Builder) plain(s string) Part { return b.part("text", s, b.budget.Text) }

func (b *Builder) terminal(s string) Part { return b.part("text", s, b.budget.ANSI) }

func (b *Builder) code(s, language string) Part {
	return b.part("code", s, func(s string) (template.HTML, int64) { return b.budget.Code(s, language) })
}

// maxLink is the longest address that is linked to, in bytes.
const maxLink = 4 << 10

// short returns the beginning of a name or heading.
func short(s string) string {
	head, _ := page.Cut(s, 4*maxWords)
	return page.Short(head, maxWords)
}

// trim shortens what templates write of parts, and takes the space for it.
func (b *Builder) trim(parts []Part) {
	for i := range parts {
		p := &parts[i]
		p.Title = short(p.Title)
		if len(p.Link) > maxLink {
			p.Link = ""
		}
		b.budget.Piece(p.Title, p.Link)
		if p.Image != nil {
			p.Image.Kind = short(p.Image.Kind)
		}
		b.trim(p.Parts)
		if p.Tool != nil {
			b.trim(p.Tool.Input)
			b.trim(p.Tool.Result)
		}
	}
}

const fence = "```"

// typed shows a prompt as it was typed: every line break, space and backslash. Code between fences is coloured.
func (b *Builder) typed(s string) (out []Part) {
	head, more := b.shown(s)
	for head != "" {
		before, language, code, rest, found := fenced(head)
		if !b.budget.Piece() {
			out, more = append(out, Part{Kind: "typed"}), more+int64(len(head))
			break
		}
		if strings.TrimSpace(before) != "" {
			html, left := b.budget.Text(strings.Trim(before, "\n"))
			out, more = append(out, Part{Kind: "typed", HTML: html}), more+left
		}
		if !found {
			break
		}
		html, left := b.budget.Code(code, language)
		out, more = append(out, Part{Kind: "code", HTML: html}), more+left
		head = rest
	}
	if n := len(out); n > 0 {
		out[n-1].More, b.cut = more, b.cut || more > 0
	}
	return out
}

// fenced cuts a text at its first block of code. A fence stands at the beginning of a line, and has an end.
func fenced(s string) (before, language, code, rest string, found bool) {
	open := 0
	if !strings.HasPrefix(s, fence) {
		at := strings.Index(s, "\n"+fence)
		if at < 0 {
			return s, "", "", "", false
		}
		open = at + 1
	}
	first, body, ok := strings.Cut(s[open+len(fence):], "\n")
	if !ok || strings.ContainsAny(first, "`") {
		return s, "", "", "", false
	}
	if strings.HasPrefix(body, fence) {
		_, rest, _ = strings.Cut(body, "\n")
		return s[:open], strings.TrimSpace(first), "", rest, true
	}
	at := strings.Index(body, "\n"+fence)
	if at < 0 {
		return s, "", "", "", false
	}
	_, rest, _ = strings.Cut(body[at+1:], "\n")
	return s[:open], strings.TrimSpace(first), body[:at], rest, true
}

// words returns a text on one line, as a heading has it.
func words(s string) string { return page.OneLine(s, maxWords) }

// day says on which day what follows happened, in the reader's zone, when that is another than before.
func (b *Builder) day(at time.Time, line int64) {
	if at.IsZero() {
		return
	}
	local := at.UTC().Add(b.East)
	if name := local.Format("Monday 2 January 2006"); name != b.today {
		b.today = name
		b.items = append(b.items, Item{Line: line, Kind: "day", Who: local.Format(time.DateOnly), Mark: "-day",
			Parts: []Part{{Kind: "note", Title: name}}})
	}
}

// noticed is how long a call may take before its time may contain waiting for permission. Those that take longer have
// moments, which know of the whole turn.
const noticed = 10 * time.Second

// Times is how long a call took, as the timeline of the whole transcript knows it.
type Times struct {
	Tool         string
	Took, Waited time.Duration // without waiting for the user, and the waiting
	MayWait      bool          // Took may contain such waiting
}

// took sets how long a call ran without waiting for the user: by what its result says itself, by what the timeline
// knows, else from call to result. MayWait says that this may contain such waiting: the records do not tell it apart.
func (b *Builder) took(t *Tool, elapsed time.Duration, o outcome) {
	stated := time.Duration(o.Millis) * time.Millisecond
	for _, own := range []float64{o.OwnMillis, 1000 * o.OwnSeconds} {
		if stated == 0 && own > 0 && own < 1e10 {
			stated = time.Duration(own * float64(time.Millisecond))
		}
	}
	switch {
	case t.call.Name == "AskUserQuestion" || t.call.Name == "ExitPlanMode":
		t.Waited = min(elapsed, 7*24*time.Hour) // all of it is waiting
	case stated > 0 && (elapsed == 0 || stated <= elapsed || o.Millis > 0):
		t.Took = stated
	case elapsed > 7*24*time.Hour:
	default:
		for _, x := range b.Times[t.ResultLine] {
			if x.Tool == t.call.Name && (x.Took+x.Waited-elapsed).Abs() < time.Millisecond {
				t.Took, t.Waited, t.MayWait = x.Took, x.Waited, x.MayWait && b.mayAsk(t)
				return
			}
		}
		t.Took, t.MayWait = elapsed, elapsed >= noticed && b.mayAsk(t)
	}
}

// mayAsk reports whether Claude Code may have asked the user before a call.
func (b *Builder) mayAsk(t *Tool) bool {
	in := t.call.input()
	path := cmp.Or(in.FilePath, in.NotebookPath, transcript.StringField(t.call.Input, "path"))
	return transcript.MayAsk(b.permission, t.call.Name, path, t.call.Cwd)
}

// maxFew is how many elements of a list in a record are read: no list that Claude Code writes is nearly as long, and an
// element takes many times as much memory as the shortest has bytes.
const maxFew = 2000

// few is the first elements of a JSON array. Anything else is an empty list.
type few[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (f *few[T]) UnmarshalJSON(raw []byte) error {
	*f = nil
	d := json.NewDecoder(bytes.NewReader(raw))
	begin, _ := d.Token() // nil for what is no JSON
	for begin == json.Delim('[') && d.More() && len(*f) < maxFew {
		var x T
		if err := d.Decode(&x); err != nil {
			return err
		}
		*f = append(*f, x)
	}
	return nil
}

// Overflow is the full text of a tool's result that was too long for the transcript.
type Overflow struct {
	Name string // of its file
	URL  string // "" when it is not here
	Size int64
}

// overflowPath finds the file in what a result says instead of the text.
var overflowPath = regexp.MustCompile(`tool-results[/\\]([A-Za-z0-9_.-]{1,160}\.(?:txt|json|md|log))`)

// overflow notes that a result's full text lies in a file of its own.
func (b *Builder) overflow(t *Tool, text string) {
	_, rest, found := strings.Cut(text, "<persisted-output>")
	if !found || b.Inline || b.Public {
		return
	}
	head, _ := page.Cut(rest, 4<<10)
	if m := overflowPath.FindStringSubmatch(head); m != nil && m[1] != ".." {
		t.Overflow = &Overflow{Name: "tool-results/" + m[1]}
		b.Overflows = append(b.Overflows, t.Overflow)
	}
}

// Resume returns what goes on with a session on its own machine; "" when that can't be done.
func Resume(x server.Session) string {
	if x.Parent != "" || x.Cwd == "" || !IsPlainID(x.SessionID) {
		return ""
	}
	return "cd " + quote(x.Cwd) + " && claude --resume " + x.SessionID
}

// quote makes one word of s for a POSIX shell.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	if strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Secrets finds secrets in the lines of pages, by the built-in rules that daemons mask with. It is safe for concurrent
// use. A nil *Secrets finds none: what it finds is for those who may have it masked.
type Secrets struct{ Masker *redact.Masker }

// For returns what finds secrets for a reader of a user's session: nothing, unless it is the reader's own or an owner
// reads.
func (s *Secrets) For(reader server.User, user int64) *Secrets {
	if reader.ID == user || reader.Role == server.Owner {
		return s
	}
	return nil
}

// SecretLine is a line of a page that holds secrets.
type SecretLine struct {
	Line  int64
	Rules []string // that found them, each once
	Link  string   // where all of the line is shown
}

// in returns the rules that find something in a line, each once, sorted.
func (s *Secrets) in(l server.Line) []string {
	if s == nil || l.Kind == server.Oversize {
		return nil
	}
	_, ranges := s.Masker.Line(l.Raw)
	var rules []string
	for _, r := range ranges {
		rules = append(rules, r.Rule)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// markSecrets notes what a line holds, and marks its last item, if it has one of its own. A result stands in the item
// of its call.
func (b *Builder) markSecrets(l StoredLine, items int) {
	var rules []string
	if b.Secrets != nil && !b.budget.Escapes(l.Raw) {
		rules = []string{"not searched, too many escapes"}
	} else {
		rules = b.Secrets.in(l.Line)
	}
	if rules == nil {
		return
	}
	link := b.base + b.stream.Path(fmt.Sprintf("/entry/%d", l.Index))
	b.SecretLines = append(b.SecretLines, SecretLine{l.Index, rules, link})
	if len(b.items) > items {
		b.items[len(b.items)-1].Secrets = rules
	}
}
