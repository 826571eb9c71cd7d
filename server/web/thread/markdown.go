package thread

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// markdownResult is how much of a tool's result an export to read keeps, in bytes.
const markdownResult = 8 << 10

// maxPending bounds the calls that wait for a result.
const maxPending = 10_000

// markdownWriter writes a conversation as Markdown, record by record.
type markdownWriter struct {
	w       *bufio.Writer
	calls   map[string]string // names of tools by call
	speaker string
	fold    session.Fold
	budget  *markup.Budget // of a line
}

// WriteMarkdown writes what was said and done: prompts, answers, calls in a line with their results behind them.
func WriteMarkdown(ctx context.Context, w io.Writer, snap server.Snapshot, view server.View,
	about About) error {
	x := snap.Session()
	n := markdownWriter{w: bufio.NewWriterSize(w, 64<<10), calls: map[string]string{}}
	n.printf("# %s\n\n", inline(page.OneLine(server.Summary{Title: about.Title}.Name(), 200)))
	for _, p := range []struct{ Name, Value string }{
		{"Project", x.Project}, {"Date", about.Date()}, {"Model", strings.Join(about.Models, ", ")},
		{"Cost", page.Cost(about.Cost)}, {"Session", x.SessionID}, {"Directory", x.Cwd}, {"Host", x.Host}, {"Lines",
			strconv.FormatInt(view.Total, 10)},
		{"Last received", page.Stamp(x.Last)},
	} {
		if p.Value != "" {
			n.printf("- %s: `%s`\n", p.Name, strings.ReplaceAll(page.OneLine(p.Value, 500), "`", "'"))
		}
	}
	err := EachHead(ctx, snap, view.Between(0, view.Total), func(l server.Line, _ int64) error {
		n.budget = markup.NewBudget()
		if l.Size() > maxParse {
			n.speaker = ""
			n.printf("\n*Line %d is left out: it has %s. The export as jsonl has all of it.*\n", l.Index+1, page.Size(l.Size()))
		}
		for _, rec := range Records(l) {
			n.record(l.Index, rec)
		}
		return n.w.Flush()
	})
	if err != nil {
		return err
	}
	return n.w.Flush()
}

// printf writes; what goes wrong the next Flush says.
func (n *markdownWriter) printf(format string, args ...any) { _, _ = fmt.Fprintf(n.w, format, args...) }

func (n *markdownWriter) heading(who string, line int64, t time.Time) {
	if who == n.speaker && who == "Claude" {
		n.printf("\n<!-- -->\n") // ends a list, which what follows would be a part of
		return
	}
	n.speaker = who
	at := ""
	if !t.IsZero() {
		at = " · " + page.Stamp(t)
	}
	n.printf("\n## %s\n\n<!-- line %d%s -->\n", who, line+1, at)
}

func (n *markdownWriter) record(line int64, rec transcript.Record) {
	if rec.Compact != nil && !rec.Compact.Micro {
		n.speaker = ""
		n.printf("\n---\n\n*%s*\n", inline(CompactionText(rec.Compact)))
		return
	}
	if rec.Type == "user" && rec.Message != nil {
		n.results(rec)
	}
	if n.prompts(line, rec) {
		return
	}
	if rec.Type != "assistant" || rec.Message == nil {
		return
	}
	if rec.APIError {
		n.printf("\n> **Error:** %s\n", inline(page.OneLine(rec.Message.Text(), 500)))
		return
	}
	if rec.Message.Synthetic() {
		return
	}
	for _, b := range rec.Message.Blocks() {
		switch {
		case b.Kind == transcript.TextBlock && strings.TrimSpace(b.Text) != "":
			n.heading("Claude", line, rec.Time)
			n.text(b.Text)
		case b.Kind == transcript.ToolUseBlock:
			n.heading("Claude", line, rec.Time)
			n.call(b)
		case b.Kind == transcript.ToolResultBlock: // of a tool that ran on the server
			n.result(b)
		}
	}
}

// prompts writes what a speaker said with a record, and reports whether it was the person.
func (n *markdownWriter) prompts(line int64, rec transcript.Record) bool {
	said := rec.Speech()
	for _, e := range n.fold.Add(line, rec) {
		switch e.Kind {
		case session.PromptEvent, session.MessageEvent:
			if rec.Type == "assistant" {
				continue // it begins a turn by itself
			}
			text := said.Text
			if said.Speaker == transcript.NoSpeaker { // only the queue has it
				text = e.Text
			}
			n.heading(inline(transcript.SpeakerLabel(e.Speaker, e.From)), line, e.Time)
			n.text(cmp.Or(text, "*(image)*"))
		case session.ReplyEvent:
			n.heading("You", line, e.Time)
			n.text(e.Text)
		case session.ClearEvent:
			n.speaker = ""
			n.printf("\n---\n\n*Context cleared*\n")
		}
	}
	return said.Speaker.Human()
}

func (n *markdownWriter) call(b transcript.Block) {
	if len(n.calls) >= maxPending {
		clear(n.calls)
	}
	n.calls[b.ToolID] = b.ToolName
	n.printf("\n**%s** %s\n", inline(page.OneLine(b.ToolName, 200)),
		inline(page.OneLine(transcript.ToolSummary(b.ToolName, b.Input, 0), 300)))
	if in := readInput(b.Input); in.Command != "" {
		n.fence("bash", in.Command)
	}
}

func (n *markdownWriter) results(rec transcript.Record) {
	for _, b := range rec.Message.Blocks() {
		if b.Kind == transcript.ToolResultBlock {
			n.result(b)
		}
	}
}

func (n *markdownWriter) result(b transcript.Block) {
	word := "Result"
	if b.Error {
		word = "Failed"
	}
	if name := n.calls[b.ToolID]; name != "" {
		word += " of " + template.HTMLEscapeString(inline(page.OneLine(name, 200))) // a blank line would end the HTML
	}
	n.printf("\n<details><summary>%s</summary>\n", word)
	n.fence("", b.Output())
	n.printf("\n</details>\n")
	delete(n.calls, b.ToolID)
}

// inline returns a line of another author's words within ours: it begins no tag, no code and no link.
func inline(s string) string {
	return strings.NewReplacer("<", "&lt;", "`", "'", `\`, `\\`, "[", `\[`, "]", `\]`).Replace(s)
}

// text writes another author's Markdown so that no renderer takes HTML from it; what cannot be made so is a code block.
func (n *markdownWriter) text(s string) {
	if inert, ok := n.budget.Inert(s); ok {
		n.printf("\n%s\n", inert)
		return
	}
	n.block("", s)
}

// fence writes the beginning of a text as a code block.
func (n *markdownWriter) fence(language, text string) {
	head, more := page.Cut(text, markdownResult)
	n.block(language, head)
	if more > 0 {
		n.printf("\n*%s more*\n", page.Size(more))
	}
}

// block writes a code block, with a fence longer than any in the text.
func (n *markdownWriter) block(language, text string) {
	marks := 3
	for run, rest := 0, []byte(text); len(rest) > 0; rest = rest[1:] {
		if rest[0] != '`' {
			run = 0
			continue
		}
		run++
		marks = max(marks, run+1)
	}
	fence := string(bytes.Repeat([]byte{'`'}, marks))
	n.printf("\n%s%s\n%s\n%s\n", fence, language, strings.TrimSuffix(text, "\n"), fence)
}
