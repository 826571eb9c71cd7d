// Package extract says which texts of a transcript line can be found. It knows nothing but the line, so that the same
// comes out whenever a line is read.
package extract

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// maxText limits the searchable text of one line and kind, in bytes.
const maxText = 256 << 10

// Texts collects texts, at most one for each line and kind. Those of a line come one after the other.
type Texts struct {
	List []server.Text
}

// Of returns the texts of a line.
func Of(l server.Line) []server.Text {
	var t Texts
	t.Past(l)
	for _, r := range Records(l) {
		t.Record(l.Index, time.Time{}, &r)
	}
	return t.List
}

// Records returns the records of a line.
func Records(l server.Line) []transcript.Record {
	switch l.Kind {
	case server.Object:
		return []transcript.Record{transcript.Parse(l.Raw)}
	case server.Opaque:
		return transcript.Records(l.Raw)
	}
	return nil
}

// Record adds the texts of a record.
func (t *Texts) Record(line int64, at time.Time, r *transcript.Record) {
	said := r.Speech()
	known := said.Speaker != transcript.NoSpeaker
	t.Add(line, at, KindOf(said.Speaker), said.Text)
	for _, reply := range r.Replies() {
		t.Add(line, at, "prompt", reply.Text)
	}
	var blocks []transcript.Block
	if r.Message != nil {
		blocks = r.Message.Blocks()
	}
	t.places(line, at, r, blocks)
	switch r.Type {
	case "user", "assistant":
		t.blocks(line, at, r, blocks, known)
	case "attachment":
		t.attached(line, at, r, known)
	case "queue-operation": // a prompt that may never have left the queue
		if r.Subtype == "enqueue" && transcript.QueuedSpeech(r.Text).Speaker.Human() {
			t.Add(line, at, "other", r.Text)
		}
	case "file-history-snapshot", "file-history-delta":
		t.snapshot(line, at, r)
	case "system":
		t.Add(line, at, "other", r.Text)
		t.Add(line, at, "other", r.Error)
	case "custom-title", "ai-title", "summary":
		t.Add(line, at, "title", r.Title)
	case "tag", "agent-name", "pr-link":
		if r.Labels != nil {
			t.Add(line, at, "other", strings.TrimSpace(r.Labels.Tag+r.Labels.AgentName+r.Labels.PRURL))
		}
	}
}

// KindOf returns the kind of text that a speaker says.
func KindOf(s transcript.Speaker) string {
	if s == transcript.Peer || s == transcript.Background {
		return "message"
	}
	return "prompt"
}

func (t *Texts) blocks(line int64, at time.Time, r *transcript.Record, blocks []transcript.Block, known bool) {
	for i := range blocks {
		b := &blocks[i]
		switch b.Kind {
		case transcript.TextBlock:
			switch {
			case r.Type == "assistant" && !r.APIError && !r.Message.Synthetic():
				t.Add(line, at, "answer", b.Text)
			case !known:
				t.Add(line, at, "other", b.Text)
			}
		case transcript.ThinkingBlock:
			t.Add(line, at, "thinking", b.Text)
		case transcript.ToolUseBlock:
			t.use(line, at, b)
		case transcript.ToolResultBlock:
			t.Add(line, at, "result", b.Output())
		}
	}
}

// use adds what a tool call says.
func (t *Texts) use(line int64, at time.Time, b *transcript.Block) {
	t.Add(line, at, "tool", b.ToolName+" "+inputText(b.Input))
}

// Add keeps a text; several of one line and kind become one.
func (t *Texts) Add(line int64, at time.Time, kind, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	for i := len(t.List) - 1; i >= 0 && t.List[i].Line == line; i-- {
		if x := &t.List[i]; x.Kind == kind {
			if len(x.Text) < maxText {
				x.Text = cutText(x.Text + "\n" + text)
			}
			return
		}
	}
	t.List = append(t.List, server.Text{Line: line, Time: at, Kind: kind, Text: cutText(text)})
}

// cutText truncates a text, and releases the text it was cut from.
func cutText(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:maxText]), "")
}

// inputText returns the values of a tool's input, in the order of their names. The names are not searchable.
func inputText(input json.RawMessage) string {
	var v any
	if json.Unmarshal(input, &v) != nil {
		return ""
	}
	var c collector
	c.collect(v)
	return c.out.String()
}
