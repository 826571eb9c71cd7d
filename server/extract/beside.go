package extract

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
func (t *Texts) attached(line int64, at time.Time, r *transcript.Record, known bool) {
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
func (t *Texts) snapshot(line int64, at time.Time, r *transcript.Record) {
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
		Timestamp float64 `json:"timestamp"` // milliseconds
		Session   string  `json:"sessionId"`
		Project   string  `json:"project"`
	}
	if json.Unmarshal(l.Raw, &said) != nil || said.Display == "" || said.Timestamp <= 0 ||
		said.Session == "" && said.Project == "" {
		return Past{}, false
	}
	at := time.UnixMilli(int64(said.Timestamp)).UTC()
	return Past{cmp.Or(said.Session, said.Project), said.Session == "", said.Display, at}, true
}

// Past adds what a line of the prompt history says.
func (t *Texts) Past(l server.Line) {
	if p, ok := PastOf(l); ok {
		t.Add(l.Index, p.Time, server.HistoryKind, p.Text)
	}
}

// maxError limits what is kept of an error to look for, in bytes: its beginning and its end.
const maxError = 16 << 10

// places adds what a record touched: files that tools changed or read, commands that were run, errors.
// blocks are its message's.
func (t *Texts) places(line int64, at time.Time, r *transcript.Record, blocks []transcript.Block) {
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
func (t *Texts) called(line int64, at time.Time, b *transcript.Block) {
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
func (t *Texts) failed(line int64, at time.Time, b *transcript.Block) {
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
