package provenance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// Edit is what one tool call added to one file.
type Edit struct {
	Line   int64     // of the call, in its transcript
	Prompt int64     // the line of the prompt that its turn began with; -1 when none is known
	At     time.Time // when it was done; of a command, when it began
	Path   string    // with slashes, absolute where the transcript tells
	Agent  string    // of an agent's transcript: its name, which Prompt is not a line of the session in
	Copied bool      // the record repeats another session's: a fork begins with such
	Sums   []Sum     // of the lines that the call added, in their order
	Others int       // further lines that the call added, which a store was not asked for
}

// Limits on what a Builder remembers.
const (
	maxCalls = 32
	maxLines = 4096 // of one edit
)

// Builder makes edits of the records of a transcript. The zero value is at its beginning. For one goroutine.
type Builder struct {
	Session string // whose transcript it is; "" is not known
	state
}

type state struct {
	Prompt int64  `json:"prompt"` // the line of the newest, from 1; 0: none yet
	Calls  []call `json:"calls,omitempty"`

	out []Edit
}

// call is a tool call without a result.
type call struct {
	ID   string    `json:"id"`
	Tool string    `json:"tool"`
	Line int64     `json:"line"`
	From int64     `json:"from"` // Edit.Prompt
	At   time.Time `json:"at,omitzero"`
	Copy bool      `json:"copy,omitempty"`
	Made []made    `json:"made"`

	input []byte // what Made[0] is to be hashed of, unless the result tells more
}

// made is what a call adds to a file.
type made struct {
	Path string `json:"path"`
	Sums []byte `json:"sums"`
}

var errState = errors.New("not the state of this version")

// MarshalBinary encodes the state, so that another Builder can continue from it. The error is always nil.
func (b *Builder) MarshalBinary() ([]byte, error) {
	for i := range b.Calls {
		b.Calls[i].hash()
	}
	return json.Marshal(&b.state)
}

// UnmarshalBinary replaces the state. After an error the Builder is at the beginning of a transcript.
func (b *Builder) UnmarshalBinary(data []byte) error {
	b.state = state{}
	if err := json.Unmarshal(data, &b.state); err != nil {
		b.state = state{}
		return fmt.Errorf("%w: %w", errState, err)
	}
	return nil
}

// Add returns the edits that a record completes. events are those that session.Fold.Add returned for it. A call counts
// when its result is there and is no error. The slice is valid until the next call.
func (b *Builder) Add(line int64, r *transcript.Record, events []session.Event) []Edit {
	b.out = b.out[:0]
	for i := range events {
		if k := events[i].Kind; k == session.PromptEvent || k == session.TaskEvent {
			b.Prompt = line + 1
		}
	}
	b.record(line, r)
	if len(r.AgentRecord) > 0 {
		agent := transcript.Parse(r.AgentRecord)
		agent.Cwd, agent.Time = r.Cwd, r.Time
		b.record(line, &agent)
	}
	return b.out
}

func (b *Builder) record(line int64, r *transcript.Record) {
	if r.Message == nil {
		return
	}
	blocks := r.Message.RawBlocks()
	for i := range blocks {
		switch p := &blocks[i]; p.Kind {
		case transcript.ToolUseBlock:
			b.called(line, r, p)
		case transcript.ToolResultBlock:
			b.answered(r, p)
		}
	}
}

// maxInput is the length of an input that a call keeps until its result comes.
const maxInput = 16 << 10

// called remembers a call that changes files.
func (b *Builder) called(line int64, r *transcript.Record, p *transcript.RawBlock) {
	switch string(p.Name) {
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
	case "Bash":
		if !bytes.Contains(p.Input, []byte("<<")) && !bytes.Contains(p.Input, []byte(`\u003`)) {
			return
		}
	default:
		return
	}
	c := call{ID: transcript.Unquote(p.ID), Tool: string(p.Name), Line: line, From: b.Prompt - 1, At: r.Time}
	c.Copy = r.Lineage != nil && r.Lineage.ForkedFrom != "" ||
		b.Session != "" && r.SessionID != "" && r.SessionID != b.Session
	if folder := slashes(r.Cwd); c.Tool != "Bash" {
		c.Made = []made{{Path: below(folder, slashes(transcript.ToolPath(c.Tool, p.Input)))}}
		c.input = p.Input
	} else {
		for _, x := range changesOf(c.Tool, p.Input) {
			c.Made = append(c.Made, made{below(folder, x.path), pack(addedBy("", x.after))})
		}
	}
	c.Made = slices.DeleteFunc(c.Made, func(m made) bool { return m.Path == "" })
	if len(c.Made) == 0 {
		return
	}
	if c.Tool != "Edit" && c.Tool != "MultiEdit" || len(c.input) > maxInput {
		c.hash()
	}
	c.input = bytes.Clone(c.input)
	if len(b.Calls) == maxCalls {
		b.Calls = b.Calls[1:]
	}
	b.Calls = append(b.Calls, c)
}

// hash makes sums of the input of a call, which is dropped.
func (c *call) hash() {
	if c.input == nil {
		return
	}
	for _, x := range changesOf(c.Tool, c.input) {
		c.Made[0].Sums = pack(addedBy(x.before, x.after))
	}
	c.input = nil
}

func pack(sums []Sum) []byte {
	out := make([]byte, 0, len(sums)*SumSize)
	for _, s := range sums {
		out = append(out, s[:]...)
	}
	return out
}

// answered completes a call.
func (b *Builder) answered(r *transcript.Record, p *transcript.RawBlock) {
	if len(b.Calls) == 0 {
		return
	}
	id := transcript.Unquote(p.ID)
	for i, c := range b.Calls {
		if c.ID != id {
			continue
		}
		b.Calls = append(b.Calls[:i:i], b.Calls[i+1:]...)
		if p.Failed && !(c.Tool == "Bash" && strings.HasPrefix(p.Output(16), "Exit code")) {
			return
		}
		// A command may write a file first and then commit it: its time is when it began.
		if at := r.Time; c.Tool != "Bash" && at.After(c.At) {
			c.At = at
		}
		b.done(&c, r)
		return
	}
}

// done emits the edits of a call. A result that has the file's changes tells more than the call: whole lines where the
// call replaced a part of one, and only the new lines of a file that was written again.
func (b *Builder) done(c *call, r *transcript.Record) {
	var known bool
	var sums []Sum
	if c.Tool != "Bash" {
		if sums, known = patched(r.ToolResult); !known {
			c.hash()
		}
	}
	for i, m := range c.Made {
		e := Edit{Line: c.Line, Prompt: c.From, At: c.At, Path: m.Path, Copied: c.Copy, Sums: sums}
		if i > 0 || !known {
			e.Sums = unpack(m.Sums)
		}
		if len(e.Sums) > 0 {
			b.out = append(b.out, e)
		}
	}
}

func unpack(packed []byte) []Sum {
	out := make([]Sum, 0, len(packed)/SumSize)
	for ; len(packed) >= SumSize; packed = packed[SumSize:] {
		out = append(out, Sum(packed))
	}
	return out
}
