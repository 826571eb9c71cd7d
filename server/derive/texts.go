package derive

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// maxText limits the searchable text of one line and kind, in bytes.
const maxText = 256 << 10

// texts collects texts, at most one for each line and kind. Those of a line come one after the other.
type texts struct {
	List []server.Text
}

// TextsOf returns the texts of a line.
func TextsOf(l server.Line) []server.Text {
	var t texts
	t.Past(l)
	for _, r := range records(l) {
		t.Record(l.Index, time.Time{}, &r)
	}
	return t.List
}

// records returns the records of a line.
func records(l server.Line) []transcript.Record {
	switch l.Kind {
	case server.Object:
		return []transcript.Record{transcript.Parse(l.Raw)}
	case server.Opaque:
		return transcript.Records(l.Raw)
	}
	return nil
}

// Record adds the texts of a record.
func (t *texts) Record(line int64, at time.Time, r *transcript.Record) {
	said := r.Speech()
	known := said.Speaker != transcript.NoSpeaker
	t.Add(line, at, kindOf(said.Speaker), said.Text)
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

// kindOf returns the kind of text that a speaker says.
func kindOf(s transcript.Speaker) string {
	if s == transcript.Peer || s == transcript.Background {
		return "message"
	}
	return "prompt"
}

func (t *texts) blocks(line int64, at time.Time, r *transcript.Record, blocks []transcript.Block, known bool) {
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
func (t *texts) use(line int64, at time.Time, b *transcript.Block) {
	t.Add(line, at, "tool", b.ToolName+" "+inputText(b.Input))
}

// Add keeps a text; several of one line and kind become one.
func (t *texts) Add(line int64, at time.Time, kind, text string) {
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

// unsearched are attachments that are the same in many sessions, that repeat what is elsewhere, or that say nothing a
// person looks for.
var unsearched = map[string]bool{
	"skill_listing": true, "deferred_tools_delta": true, "agent_listing_delta": true, "mcp_instructions_delta": true,
	"prompt_snapshot": true, "environment": true, "session_context": true, "model": true, "date": true,
	"companion_intro": true, "auto_mode": true, "command_permissions": true, "total_tokens_reminder": true,
	"task_reminder": true, "todo_reminder": true,
}

// unread are members of attachments that are no text of theirs: names, and files as base64. The command of a hook is
// the same with each of its records.
var unread = map[string]bool{
	"type": true, "toolUseID": true, "hookName": true, "hookEvent": true, "command": true, "reminderType": true,
	"timestamp": true, "uuid": true, "base64": true, "data": true, "blob": true,
}

// maxUnbroken is how long a text without a space may be, in bytes: longer ones are encoded files.
const maxUnbroken = 1 << 10

// attached adds what an attachment says.
func (t *texts) attached(line int64, at time.Time, r *transcript.Record, known bool) {
	switch {
	case known || unsearched[r.Subtype]:
	case r.Subtype == "queued_command":
		t.Add(line, at, "other", r.Text)
	default:
		var v any
		if json.Unmarshal(r.Attached, &v) == nil {
			c := collector{seen: map[string]bool{}}
			c.collect(v)
			t.Add(line, at, "other", c.out.String())
		}
	}
}

// collector collects the texts of a value: all of a tool's input; of an attachment each once, because hooks say what
// they print twice, and no encoded files.
type collector struct {
	out  strings.Builder
	seen map[string]bool // of an attachment; nil: of a tool's input
}

func (c *collector) collect(v any) {
	switch v := v.(type) {
	case string:
		switch {
		case c.out.Len() > maxText:
			return
		case c.seen == nil:
		case v == "" || c.seen[v] || len(v) > maxUnbroken && !strings.ContainsAny(v, " \n"):
			return
		default:
			c.seen[v] = true
		}
		c.out.WriteString(v)
		c.out.WriteByte('\n')
	case []any:
		for _, x := range v {
			c.collect(x)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if c.seen == nil || !unread[name] {
				c.collect(v[name])
			}
		}
	}
}

// snapshot adds the files that Claude Code made a backup of. A snapshot repeats those of the snapshots before it, and
// an update those of the updates before it, so that a file counts only where its backup is new.
func (t *texts) snapshot(line int64, at time.Time, r *transcript.Record) {
	var path string
	if json.Unmarshal(r.Snapshot, &path) == nil {
		t.Add(line, at, "other", path)
		return
	}
	var s struct {
		Taken   time.Time `json:"timestamp"`
		Backups map[string]struct {
			At time.Time `json:"backupTime"`
		} `json:"trackedFileBackups"`
	}
	if json.Unmarshal(r.Snapshot, &s) != nil {
		return
	}
	newest := s.Taken
	for _, b := range s.Backups {
		if b.At.After(newest) {
			newest = b.At
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.Backups)) {
		if b := s.Backups[path].At; b.IsZero() || newest.Sub(b) < sameBackup {
			t.Add(line, at, "other", path)
		}
	}
}

// sameBackup is how long the backups of one snapshot take at most.
const sameBackup = time.Second

// Past is a line of the prompt history: what a person typed, in which session, and when. Old versions of Claude Code
// wrote no session, only the folder: Session is that then, and Unnamed is set.
type Past struct {
	Session string
	Unnamed bool
	Text    string
	Time    time.Time
}

// PastOf reads a line of the prompt history; false for any other line. Those have a type.
func PastOf(l server.Line) (Past, bool) {
	if scanned := transcript.Scan(l.Raw); l.Kind != server.Object || scanned.Type != nil {
		return Past{}, false
	}
	var said struct {
		Display   string  `json:"display"`
		Timestamp float64 `json:"timestamp"` // as transcript.UnixTime takes it
		Session   string  `json:"sessionId"`
		Project   string  `json:"project"`
	}
	if json.Unmarshal(l.Raw, &said) != nil || said.Display == "" || said.Timestamp <= 0 ||
		said.Session == "" && said.Project == "" {
		return Past{}, false
	}
	at := transcript.UnixTime(int64(said.Timestamp))
	return Past{cmp.Or(said.Session, said.Project), said.Session == "", said.Display, at}, true
}

// Past adds what a line of the prompt history says.
func (t *texts) Past(l server.Line) {
	if p, ok := PastOf(l); ok {
		t.Add(l.Index, p.Time, server.HistoryKind, p.Text)
	}
}

// maxError limits what is kept of an error to look for, in bytes: its beginning and its end.
const maxError = 16 << 10

// places adds what a record touched: files that tools changed or read, commands that were run, errors.
// blocks are its message's.
func (t *texts) places(line int64, at time.Time, r *transcript.Record, blocks []transcript.Block) {
	switch r.Type {
	case "attachment":
		t.Add(line, at, server.ReadKind, framed(attachedPath(r)))
	case "system":
		t.Add(line, at, server.ErrorKind, r.Error)
	}
	if r.Message == nil {
		return
	}
	if r.APIError {
		t.Add(line, at, server.ErrorKind, r.Message.Text())
	}
	for i := range blocks {
		switch b := &blocks[i]; b.Kind {
		case transcript.ToolUseBlock:
			t.called(line, at, b)
		case transcript.ToolResultBlock:
			t.failed(line, at, b)
		}
	}
}

// called adds what a tool call touches.
func (t *texts) called(line int64, at time.Time, b *transcript.Block) {
	switch b.ToolName {
	case "Bash", "PowerShell":
		t.Add(line, at, server.CommandKind, transcript.StringField(b.Input, "command"))
	case "Read", "NotebookRead":
		t.Add(line, at, server.ReadKind, framed(transcript.ToolPath(b.ToolName, b.Input)))
	default:
		t.Add(line, at, server.EditKind, framed(transcript.ToolPath(b.ToolName, b.Input)))
	}
}

// failed adds the error that a tool call ended with.
func (t *texts) failed(line int64, at time.Time, b *transcript.Block) {
	if b.Error {
		t.Add(line, at, server.ErrorKind, ends(b.Output()))
	}
}

// framed returns a path as texts have it: with slashes, and between < and >, so that its end can be looked for.
func framed(path string) string {
	if path == "" {
		return ""
	}
	return "<" + strings.ReplaceAll(path, `\`, "/") + ">"
}

// ends returns a long text without its middle: errors stand at the beginning of an output or at its end.
func ends(text string) string {
	if len(text) <= maxError {
		return text
	}
	return strings.ToValidUTF8(text[:maxError/2], "") + "\n…\n" + strings.ToValidUTF8(text[len(text)-maxError/2:], "")
}
