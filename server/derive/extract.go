package derive

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// maxText limits the searchable text of one line and kind, in bytes.
const maxText = 256 << 10

// extractor collects texts and answers from the lines of a step.
type extractor struct {
	w       *derivation
	agent   bool // the transcript is an agent's
	fold    *session.Fold
	keep    bool // texts and answers, not only the fold
	bytes   int  // of lines
	text    int  // bytes of texts
	texts   []server.Text
	answers map[string]transcript.UsageSample
}

// line adds a stored line. errStepFull means that it is the step's last.
func (h *extractor) line(l server.Line) error {
	from := len(h.texts)
	switch l.Kind {
	case server.Object:
		h.record(l.Index, transcript.Parse(l.Raw))
	case server.Opaque:
		for _, object := range transcript.Recover(l.Raw) {
			h.record(l.Index, transcript.Parse(object))
		}
	}
	for i := from; i < len(h.texts); i++ {
		h.text += len(h.texts[i].Text)
	}
	if h.bytes += len(l.Raw); h.bytes >= stepBytes || h.text >= stepText || len(h.answers) >= stepAnswers {
		return errStepFull
	}
	return nil
}

func (h *extractor) record(line int64, r transcript.Record) {
	if r.Time.After(h.w.clock) {
		h.w.clock = r.Time
	}
	events := h.fold.Add(line, r)
	if !h.keep {
		return
	}
	at := r.Time
	if at.IsZero() {
		at = h.w.clock
	}
	if at.IsZero() {
		at = h.w.arrived
	}
	for _, e := range events {
		switch {
		case e.Kind == session.UsageEvent:
			h.answer(*e.Usage, at)
		case e.Kind == session.PromptEvent && r.Type == "queue-operation":
			h.add(line, at, "prompt", e.Text)
		}
	}
	h.message(line, at, &r)
}

// answer keeps the usage of an answer: of its lines, the one with the most complete numbers.
func (h *extractor) answer(u transcript.UsageSample, at time.Time) {
	if u.Time.IsZero() {
		u.Time = at
	}
	key := u.Key()
	if key == "" {
		return
	}
	if h.answers == nil {
		h.answers = map[string]transcript.UsageSample{}
	}
	if before, ok := h.answers[key]; !ok || u.Supersedes(before) {
		h.answers[key] = u
	}
}

// message adds the texts that can be found in a record.
func (h *extractor) message(line int64, at time.Time, r *transcript.Record) {
	prompt, typed := r.Prompt()
	if typed {
		h.add(line, at, "prompt", prompt)
	}
	switch r.Type {
	case "user", "assistant":
		if r.Message != nil {
			h.blocks(line, at, r, typed)
		}
	case "system":
		h.add(line, at, "other", r.Text)
		h.add(line, at, "other", r.Error)
	case "custom-title", "ai-title", "summary":
		h.add(line, at, "title", r.Title)
	case "tag", "agent-name", "pr-link":
		if r.Labels != nil {
			h.add(line, at, "other", strings.TrimSpace(r.Labels.Tag+r.Labels.AgentName+r.Labels.PRURL))
		}
	}
}

func (h *extractor) blocks(line int64, at time.Time, r *transcript.Record, typed bool) {
	for _, b := range r.Message.Blocks() {
		switch b.Kind {
		case transcript.TextBlock:
			switch {
			case r.Type == "assistant" && !r.APIError && !r.Message.Synthetic():
				h.add(line, at, "answer", b.Text)
			case !typed:
				h.add(line, at, "other", b.Text)
			}
		case transcript.ThinkingBlock:
			h.add(line, at, "thinking", b.Text)
		case transcript.ToolUseBlock:
			h.add(line, at, "tool", b.ToolName+" "+inputText(b.Input))
		case transcript.ToolResultBlock:
			h.add(line, at, "result", b.Output())
		}
	}
}

// add keeps a text; several of one line and kind become one.
func (h *extractor) add(line int64, at time.Time, kind, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	for i := len(h.texts) - 1; i >= 0 && h.texts[i].Line == line; i-- {
		if t := &h.texts[i]; t.Kind == kind {
			if len(t.Text) < maxText {
				t.Text = cutText(t.Text + "\n" + text)
			}
			return
		}
	}
	h.texts = append(h.texts, server.Text{Line: line, Time: at, Kind: kind, Text: cutText(text)})
}

// cutText truncates a text, and releases the text it was cut from.
func cutText(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:maxText]), "")
}

// inputText is the values of a tool's input, in the order of their names. The names are not searchable.
func inputText(input json.RawMessage) string {
	var v any
	if json.Unmarshal(input, &v) != nil {
		return ""
	}
	var out strings.Builder
	appendValues(&out, v)
	return out.String()
}

func appendValues(out *strings.Builder, v any) {
	if out.Len() > maxText {
		return
	}
	switch v := v.(type) {
	case string:
		out.WriteString(v)
		out.WriteByte('\n')
	case []any:
		for _, x := range v {
			appendValues(out, x)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			appendValues(out, v[name])
		}
	}
}

// into puts what was collected into a derivation.
func (h *extractor) into(d *server.Derivation) {
	d.Texts = h.texts
	for i := range d.Texts {
		d.Texts[i].Generation = d.Position.Generation
	}
	for _, key := range slices.Sorted(maps.Keys(h.answers)) {
		u := h.answers[key]
		d.Answers = append(d.Answers, server.Answer{
			Key: key, Sidechain: u.Sidechain || h.agent, Model: u.Model, Time: u.Time,
			Tokens: server.Tokens{
				Answers: 1, Input: u.Usage.Input, Output: u.Usage.Output, CacheRead: u.Usage.CacheRead,
				CacheWrite5m: u.Usage.CacheWrite5m, CacheWrite1h: u.Usage.CacheWrite1h,
			},
		})
	}
}
