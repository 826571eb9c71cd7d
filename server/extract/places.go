package extract

import (
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

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
