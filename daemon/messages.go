package daemon

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/transcript/session"
)

// Messages answers a session's short history as its transcript stands now.
func (d *Daemon) Messages(ctx context.Context, q control.MessagesQuery) (control.Messages, error) {
	a := control.Messages{SchemaVersion: control.SchemaVersion, Offset: q.Offset, Messages: []control.Message{}}
	s, err := d.sessionNamed(ctx, q.Session)
	if err != nil {
		return a, err
	}
	a.Session = s.name
	err = d.derive.visit(ctx, s.id, func(p *pass) error {
		for _, m := range p.log.Messages(q.Limit, q.Offset) {
			a.Messages = append(a.Messages, wireMessage(&m))
		}
		a.Total = p.log.Len()
		sum := p.session.Summary()
		a.Title, a.UpdatedAt = sum.Title, milli(sum.Ended)
		return nil
	})
	return a, d.notVisited(s, err)
}

// ClearMessages forgets a session's short history. What is written from now on is kept again.
func (d *Daemon) ClearMessages(ctx context.Context, session string) (control.ClearResult, error) {
	a := control.ClearResult{SchemaVersion: control.SchemaVersion}
	s, err := d.sessionNamed(ctx, session)
	if err != nil {
		return a, err
	}
	a.Session = s.name
	err = d.derive.visit(ctx, s.id, func(p *pass) error {
		a.Cleared = p.log.Len()
		p.log.Clear()
		p.follow.cleared = p.line
		p.keep()
		return nil
	})
	return a, d.notVisited(s, err)
}

// notVisited says for people why a session cannot be looked into.
func (d *Daemon) notVisited(s namedSession, err error) error {
	if errors.Is(err, state.ErrUnknownFile) {
		return control.NoSession("nothing of session "+s.name+" was read yet",
			"`ccship sync` reads everything at once")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return control.NoSession("the transcript of "+s.name+" is gone, and nothing was kept of it here",
			"`ccship sessions show "+s.name+"` asks the server")
	}
	return err
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// wireMessage is a message in the terms of the socket.
func wireMessage(m *session.LogMessage) control.Message {
	w := control.Message{Line: m.Line, UUID: m.UUID, Timestamp: milli(m.Time), Content: m.Content}
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
	case session.ErrorMessage:
		w.Role, w.Type = "system", "error"
	case session.ResultMessage:
		w.Role, w.Type = "system", "result"
		w.Duration, w.InputTokens, w.OutputTokens, w.Interrupted = m.Duration.Seconds(), m.InputTokens, m.OutputTokens, m.Interrupted
	}
	return w
}
