package library

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
)

// Spot is a line of a conversation.
type Spot struct {
	Ref   remote.Ref // on the server
	Path  string     // on disk; "": the server is asked
	Line  int64      // -1: the end
	Lines int64      // how many lines there are, as far as is known; for the end
}

// Passage is a message of a conversation, with what it changes.
type Passage struct {
	Message
	Tool    string // of a call or its result; Text is what it works on, or what came out
	Failed  bool
	Changes []Change
}

// Change is a piece of a file that an edit replaces. Old is empty where a file is written.
type Change struct{ Old, New string }

// A window is what Around reads of a conversation: lines before the one that is asked for, and of all at most.
const (
	windowBefore = 30
	windowLines  = 90
	windowBytes  = 1 << 20 // of the end of a file
)

// Around returns the messages near a line of a conversation, in their order.
func (l *Library) Around(ctx context.Context, at Spot) ([]Passage, error) {
	var w window
	switch {
	case at.Path != "" && at.Line < 0:
		err := w.readEnd(at.Path)
		return w.passages(), err
	case at.Path != "":
		err := w.readFrom(ctx, at.Path, at.Line-windowBefore)
		return w.passages(), err
	case l.Server == nil:
		return nil, NoServer()
	}
	entries, err := l.entriesAround(ctx, at)
	for i := range entries {
		w.add(entries[i].Line, entries[i].Record)
	}
	return w.passages(), err
}

// entriesAround asks the server for a window. Of a conversation with fewer lines in its newest version than are stored,
// the end is looked up.
func (l *Library) entriesAround(ctx context.Context, at Spot) ([]remote.Entry, error) {
	if at.Line >= 0 {
		return remote.Window(ctx, l.Server, at.Ref, max(at.Line-windowBefore-1, -1), windowLines)
	}
	entries, err := remote.Window(ctx, l.Server, at.Ref, max(at.Lines-windowLines-1, -1), windowLines)
	if err != nil || len(entries) > 0 || at.Lines == 0 {
		return entries, err
	}
	s, err := l.Server.Session(ctx, at.Ref)
	if err != nil {
		return nil, err
	}
	end, err := viewEnd(&s, nil)
	if err != nil {
		return nil, err
	}
	return remote.Window(ctx, l.Server, at.Ref, max(end-windowLines-1, -1), windowLines)
}

// window folds some lines of a conversation.
type window struct {
	messages
	changes map[string][]Change // by the id of a tool's call
}

func (w *window) add(line int64, raw []byte) {
	w.messages.add(line, raw)
	if !bytes.Contains(raw, []byte(`"tool_use"`)) {
		return
	}
	var said struct {
		Message struct {
			Content []struct {
				ID    string
				Input struct {
					Old   string `json:"old_string"`
					New   string `json:"new_string"`
					Text  string `json:"content"`
					Edits []struct {
						Old string `json:"old_string"`
						New string `json:"new_string"`
					}
				}
			}
		}
	}
	if json.Unmarshal(raw, &said) != nil { // an input of another form changes nothing that is known
		return
	}
	for _, c := range said.Message.Content {
		var all []Change
		if in := c.Input; in.Old != "" || in.New != "" || in.Text != "" {
			all = append(all, Change{in.Old, cmp.Or(in.New, in.Text)})
		}
		for _, e := range c.Input.Edits {
			all = append(all, Change{e.Old, e.New})
		}
		if len(all) > 0 {
			if w.changes == nil {
				w.changes = map[string][]Change{}
			}
			w.changes[c.ID] = all
		}
	}
}

func (w *window) passages() []Passage {
	var out []Passage
	for _, m := range w.log.Messages(0, 0) {
		p := Passage{Message: messageOf(&m), Tool: m.ToolName, Failed: m.Error != "", Changes: w.changes[m.ToolID]}
		if m.ToolName != "" {
			p.Text = transcript.ToolSummary(m.ToolName, m.ToolInput, 200)
			if out := strings.TrimSpace(cmp.Or(m.Error, m.Output)); out != "" {
				p.Text += "\n" + out
			}
		}
		out = append(out, p)
	}
	return out
}

// readFrom reads lines of a file from line first on.
func (w *window) readFrom(ctx context.Context, path string, first int64) error {
	n, enough := int64(0), errors.New("read enough")
	err := eachLine(ctx, path, func(line []byte, _ bool) error {
		if n >= first && n < first+windowLines {
			w.add(n, line)
		}
		if n++; n >= max(first, 0)+windowLines {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// readEnd reads the last lines of a file. They are numbered from the first one read.
func (w *window) readEnd(path string) error {
	text, skipped, err := endOf(path, windowBytes)
	if err != nil {
		return err
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if skipped && len(lines) > 1 { // the first is the end of a line
		lines = lines[1:]
	}
	lines = lines[max(0, len(lines)-windowLines):]
	for i, line := range lines {
		w.add(int64(i), bytes.TrimSuffix(line, []byte("\n")))
	}
	return nil
}

// endOf reads up to so many bytes of the end of a file; skipped says that it has more.
func endOf(path string, most int64) (text []byte, skipped bool, err error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return nil, false, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		skipped = info.Size() > most
		text, err = io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
	}
	if err != nil {
		return nil, false, fmt.Errorf("read transcript: %w", err)
	}
	return text, skipped, nil
}
