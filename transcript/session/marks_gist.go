package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

// gist is what a summary is made of: the last prompts and answers, and the tools since the last compaction.
type gist struct {
	said  []saying
	tools []toolCount
}

type saying struct {
	prompt bool
	line   int64
	text   string
}

type toolCount struct {
	name  string
	calls int64
}

// Bounds of a gist, in characters where nothing else is said. Together they keep the summary below 1 000.
const (
	maxSaying    = 260
	maxPrompts   = 3 // that are kept; the last two are told
	maxSayings   = 2 // answers
	maxToolNames = 32
	toldTools    = 8
	toldToolLine = 120
	toldTitle    = 120
	toldEarlier  = 160 // of the prompt before the last
)

func (g *gist) add(e *Event) {
	switch e.Kind {
	case PromptEvent, TaskEvent:
		g.say(saying{prompt: true, line: e.Line, text: transcript.OneLine(e.Text, maxSaying)}, maxPrompts)
	case AnswerEvent:
		if text := lastSentences(e.Text, maxSaying); text != "" && !e.Synthetic {
			g.say(saying{line: e.Line, text: text}, maxSayings)
		}
	case ToolStartEvent:
		g.count(e.ToolName)
	}
}

// say keeps the last ones of each sort.
func (g *gist) say(s saying, most int) {
	if s.text == "" {
		return
	}
	n := 0
	for i := len(g.said) - 1; i >= 0; i-- {
		if g.said[i].prompt != s.prompt {
			continue
		}
		if n++; n == most {
			g.said = slices.Delete(g.said, i, i+1)
			break
		}
	}
	g.said = append(g.said, s)
}

func (g *gist) count(name string) {
	name = transcript.OneLine(name, 64)
	if i := slices.IndexFunc(g.tools, func(t toolCount) bool { return t.name == name }); i >= 0 {
		g.tools[i].calls++
		return
	}
	if len(g.tools) < maxToolNames && name != "" {
		g.tools = append(g.tools, toolCount{name, 1})
	}
}

func (g *gist) cut(to int64) {
	g.said = slices.DeleteFunc(g.said, func(s saying) bool { return s.line > to })
}

func (g *gist) restart() { g.tools = nil }

// last are the texts of a sort, the newest last.
func (g *gist) last(prompts bool) (texts []string) {
	for _, s := range g.said {
		if s.prompt == prompts {
			texts = append(texts, s.text)
		}
	}
	return texts
}

// summary says in a few lines what a session is about just now. It is put together from its own words.
func (g *gist) summary(s *Session) string {
	var lines []string
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, label+": "+text)
		}
	}
	prompts, answers := g.last(true), g.last(false)
	last := ""
	if n := len(prompts); n > 0 {
		last = prompts[n-1]
	}
	if title, _ := s.titled(); title != last {
		add("Title", transcript.OneLine(title, toldTitle))
	}
	if n := len(prompts); n > 1 {
		add("Earlier", transcript.OneLine(prompts[n-2], toldEarlier))
	}
	add("Prompt", last)
	if n := len(answers); n > 0 {
		add("Answer", answers[n-1])
	}
	add("Tools", g.toolLine())
	return strings.Join(lines, "\n")
}

func (g *gist) toolLine() string {
	tools := slices.Clone(g.tools)
	slices.SortFunc(tools, func(a, b toolCount) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
	var parts []string
	for _, t := range tools[:min(len(tools), toldTools)] {
		parts = append(parts, fmt.Sprintf("%s %d", transcript.OneLine(t.name, 24), t.calls))
	}
	return transcript.OneLine(strings.Join(parts, ", "), toldToolLine)
}

// lastSentences is the end of a text on one line, at most limit characters, from the beginning of a sentence if there
// is one in them, else of a word.
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

func (g *gist) layout(c *codec) {
	list(c, &g.said, maxPrompts+maxSayings, func(s *saying) { c.bools(&s.prompt); c.int(&s.line); c.text(&s.text) })
	list(c, &g.tools, maxToolNames, func(t *toolCount) { c.text(&t.name); c.int(&t.calls) })
}
