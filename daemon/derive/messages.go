package derive

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// Messages returns a page of the message log of a session's current transcript. name is the session's, for errors.
func (d *Deriver) Messages(ctx context.Context, file tail.FileID, name string,
	page control.Page) (control.Messages, error) {
	a := control.Messages{SchemaVersion: control.SchemaVersion, Session: name, Offset: page.Offset,
		Messages: []control.Message{}}
	err := d.Query(ctx, file, func(s *FoldStep) error {
		log := &s.projection.log
		for _, m := range log.Messages(page.Limit, page.Offset) {
			a.Messages = append(a.Messages, wireMessage(&m))
		}
		a.Total = log.Len()
		sum := s.Session.Summary()
		a.Title, a.UpdatedAt = sum.Title, unixMilli(sum.Ended)
		return nil
	})
	return a, QueryError(name, err)
}

// ClearMessages empties a session's message log. Lines that are written from now on are kept again.
func (d *Deriver) ClearMessages(ctx context.Context, file tail.FileID, name string) (control.ClearResult, error) {
	a := control.ClearResult{SchemaVersion: control.SchemaVersion, Session: name}
	err := d.Query(ctx, file, func(s *FoldStep) error {
		p := s.projection
		a.Cleared = p.log.Len()
		p.log.Clear()
		p.cleared = s.Line
		s.Save()
		return nil
	})
	return a, QueryError(name, err)
}

// QueryError turns an error of Query into an error for people; nil stays nil.
func QueryError(name string, err error) error {
	if errors.Is(err, state.ErrUnknownFile) {
		return control.NoSession("nothing of session "+name+" has been read yet", "`ccship sync` reads everything now")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return control.NoSession("the transcript of "+name+" is gone, and nothing of it is kept on this machine",
			"`ccship show "+name+"` asks the server")
	}
	return err
}

// unixMilli returns 0 for the zero time.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// wireMessage converts a message to the wire type.
func wireMessage(m *session.Message) control.Message {
	w := control.Message{Line: m.Line, UUID: m.UUID, Timestamp: unixMilli(m.Time), Content: m.Content, From: m.From}
	switch m.Kind {
	case session.UserMessage:
		w.Role, w.Type = "user", "text"
	case session.AssistantMessage:
		w.Role, w.Type = "assistant", "text"
	case session.ToolStartMessage, session.ToolCompleteMessage:
		w.Role, w.Type = "assistant", string(m.Kind)
		w.ToolUseID, w.ToolName, w.ToolInput, w.Aborted = m.ToolID, m.ToolName, m.ToolInput, m.Aborted
		if m.Kind == session.ToolCompleteMessage {
			w.Success, w.Output = &m.Success, m.Output
			if !m.Success {
				w.Error = &m.Error
			}
		}
	case session.OthersMessage:
		w.Role, w.Type = "system", string(m.Kind)
	case session.ErrorMessage:
		w.Role, w.Type = "system", "error"
	case session.ResultMessage:
		w.Role, w.Type = "system", "result"
		w.Duration, w.Interrupted = m.Duration.Seconds(), m.Interrupted
		u := &m.Usage
		w.InputTokens, w.OutputTokens = u.Context(), u.Output
		w.NewTokens, w.CacheWrite, w.CacheRead = u.Input, u.CacheWrite5m+u.CacheWrite1h, u.CacheRead
	case session.CommandMessage, session.InterruptedMessage:
		w.Role, w.Type = "user", string(m.Kind)
	case session.CompactionMessage, session.ClearedMessage:
		w.Role, w.Type = "system", string(m.Kind)
		w.Trigger, w.TokensBefore, w.TokensAfter = m.Compact.Trigger, m.Compact.Pre, m.Compact.Post
	}
	return w
}
