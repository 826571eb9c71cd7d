package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

// summaryParts are the parts of a checkpoint's summary: the latest prompts and answers, and the tools used since the
// last compaction.
type summaryParts struct {
	excerpts []excerpt
	tools    []toolCount
}

type excerpt struct {
	prompt bool
	line   int64
	text   string
}

type toolCount struct {
	name  string
	calls int64
}

// Limits of summaryParts, in characters unless noted. Together they keep the summary below 1 000 characters.
const (
	maxExcerpt        = 260
	maxPromptExcerpts = 3 // prompts kept; the summary shows the last two
	maxAnswerExcerpts = 2 // answers kept
	maxToolNames      = 32
	summaryTools      = 8
	summaryToolLine   = 120
	summaryTitleSize  = 120
	summaryEarlier    = 160 // of the prompt before the last
)

func (g *summaryParts) add(e *Event) {
	switch e.Kind {
	case PromptEvent, TaskEvent:
		g.keep(excerpt{prompt: true, line: e.Line, text: transcript.OneLine(e.Text, maxExcerpt)}, maxPromptExcerpts)
	case AnswerEvent:
		if text := lastSentences(e.Text, maxExcerpt); text != "" && !e.Synthetic {
			g.keep(excerpt{line: e.Line, text: text}, maxAnswerExcerpts)
		}
	case ToolStartEvent:
		g.count(e.ToolName)
	}
}

// keep keeps the latest excerpts of each kind.
func (g *summaryParts) keep(s excerpt, most int) {
	if s.text == "" {
		return
	}
	n := 0
	for i := len(g.excerpts) - 1; i >= 0; i-- {
		if g.excerpts[i].prompt != s.prompt {
			continue
		}
		if n++; n == most {
			g.excerpts = slices.Delete(g.excerpts, i, i+1)
			break
		}
	}
	g.excerpts = append(g.excerpts, s)
}

func (g *summaryParts) count(name string) {
	name = transcript.OneLine(name, 64)
	if i := slices.IndexFunc(g.tools, func(t toolCount) bool { return t.name == name }); i >= 0 {
		g.tools[i].calls++
		return
	}
	if len(g.tools) < maxToolNames && name != "" {
		g.tools = append(g.tools, toolCount{name, 1})
	}
}

func (g *summaryParts) cut(r *Rewind) {
	g.excerpts = slices.DeleteFunc(g.excerpts, func(s excerpt) bool { return r.Leaves(s.line) })
}

func (g *summaryParts) restart() { g.tools = nil }

// texts returns the texts of one kind, newest last.
func (g *summaryParts) texts(prompts bool) (texts []string) {
	for _, s := range g.excerpts {
		if s.prompt == prompts {
			texts = append(texts, s.text)
		}
	}
	return texts
}

// summary describes in a few lines what the session is about now, in the session's own words.
func (g *summaryParts) summary(s *Fold) string {
	var lines []string
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, label+": "+text)
		}
	}
	prompts, answers := g.texts(true), g.texts(false)
	last := ""
	if n := len(prompts); n > 0 {
		last = prompts[n-1]
	}
	if title, _ := s.titled(); title != last {
		add("Title", transcript.OneLine(title, summaryTitleSize))
	}
	if n := len(prompts); n > 1 {
		add("Earlier", transcript.OneLine(prompts[n-2], summaryEarlier))
	}
	add("Prompt", last)
	if n := len(answers); n > 0 {
		add("Answer", answers[n-1])
	}
	add("Tools", g.toolLine())
	return strings.Join(lines, "\n")
}

func (g *summaryParts) toolLine() string {
	tools := slices.Clone(g.tools)
	slices.SortFunc(tools, func(a, b toolCount) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
	var parts []string
	for _, t := range tools[:min(len(tools), summaryTools)] {
		parts = append(parts, fmt.Sprintf("%s %d", transcript.OneLine(t.name, 24), t.calls))
	}
	return transcript.OneLine(strings.Join(parts, ", "), summaryToolLine)
}

// lastSentences returns the end of a text on one line, at most limit characters, starting at a sentence if there is
// one, otherwise at a word.
func lastSentences(text string, limit int) string {
	most := limit * utf8.UTFMax * 2
	cut := len(text) > most
	if cut {
		text = text[len(text)-most:]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	line := []rune(transcript.OneLine(text, most))
	if len(line) <= limit && !cut {
		return string(line)
	}
	end := line[max(0, len(line)-limit+1):]
	for i := 0; i < len(end)/2; i++ {
		switch {
		case strings.ContainsRune("。！？", end[i]), i > 0 && end[i] == ' ' && strings.ContainsRune(".!?:", end[i-1]):
			return strings.TrimLeft(string(end[i+1:]), " ")
		}
	}
	if i := slices.Index(end, ' '); i >= 0 && i < len(end)/2 {
		end = end[i+1:]
	}
	return "…" + string(end)
}

func (g *summaryParts) layout(c *codec) {
	list(c, &g.excerpts, maxPromptExcerpts+maxAnswerExcerpts, func(s *excerpt) {
		c.bools(&s.prompt)
		c.int(&s.line)
		c.text(&s.text)
	})
	list(c, &g.tools, maxToolNames, func(t *toolCount) { c.text(&t.name); c.int(&t.calls) })
}
