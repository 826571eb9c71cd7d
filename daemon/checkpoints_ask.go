package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// Limits of what a caller may say of a checkpoint, in characters.
const (
	mostSummary = 1000
	mostPort    = 200
)

// Checkpoints lists a session's checkpoints, or all of them, newest first. A session is understood to its end before.
func (d *Daemon) Checkpoints(ctx context.Context, q control.CheckpointsQuery) (control.Checkpoints, error) {
	a := control.Checkpoints{SchemaVersion: control.SchemaVersion, Checkpoints: []control.Checkpoint{}}
	var s namedSession
	if q.Session != "" {
		var err error
		if s, err = d.sessionNamed(ctx, q.Session); err != nil {
			return a, err
		}
		err = d.derive.Query(ctx, s.id, func(*derive.FoldStep) error { return nil })
		// Of a file that is gone, what was made stays; of one that was not read yet, there is nothing.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, state.ErrUnknownFile) {
			return a, fmt.Errorf("list checkpoints: %w", err)
		}
	}
	list, more, err := d.db.Checkpoints(ctx, s.id, q.Offset, q.Limit)
	if err != nil {
		return a, err
	}
	for i := range list {
		a.Checkpoints = append(a.Checkpoints, shownCheckpoint(&list[i]))
	}
	if more {
		a.Next = q.Offset + len(list)
	}
	return a, nil
}

func shownCheckpoint(c *state.Checkpoint) control.Checkpoint {
	return control.Checkpoint{
		ID: c.ID, SessionID: c.Session, PortID: c.Port, TokensUsed: c.Tokens, TokenBudget: c.Budget, TriggerType: c.Trigger,
		ContextHash: c.ContextHash, Summary: c.Summary, ActiveFiles: append([]string{}, c.ActiveFiles...), CreatedAt: c.At,
	}
}

// Checkpoint answers the one with an id.
func (d *Daemon) Checkpoint(ctx context.Context, id string) (control.CheckpointAnswer, error) {
	c, found, err := d.db.Checkpoint(ctx, id)
	if err == nil && !found {
		err = control.NewError(control.CodeNoCheckpoint, fmt.Sprintf("there is no checkpoint %.40q", id),
			"`ccship checkpoint list` names them")
	}
	return control.CheckpointAnswer{SchemaVersion: control.SchemaVersion, Checkpoint: shownCheckpoint(&c)}, err
}

// CreateCheckpoint makes one of a session as it stands. It is durable when this answers.
func (d *Daemon) CreateCheckpoint(ctx context.Context, req control.CheckpointRequest) (a control.CheckpointAnswer, err error) {
	trigger, err := askedTrigger(req.Trigger)
	if err != nil {
		return a, err
	}
	if utf8.RuneCountInString(req.PortID) > mostPort {
		return a, control.Usage(fmt.Sprintf("the port has more than %d characters", mostPort), "it is a short name")
	}
	s, err := d.sessionNamed(ctx, req.Session)
	if err != nil {
		return a, err
	}
	id, err := newCheckpointID()
	if err != nil {
		return a, err
	}
	err = d.derive.Query(ctx, s.id, func(p *derive.FoldStep) error {
		if !hasCheckpoints(p) {
			return control.Usage("an agent's transcript has no checkpoints",
				"name the session that started it: "+p.Facts.Stream.Parent)
		}
		c := checkpointOf(p, p.Marks.Current(p.Session, trigger, max(0, p.Line-1)))
		c.ID, c.Port, c.At = id, req.PortID, time.Now().UTC().Truncate(time.Millisecond)
		if text := strings.TrimSpace(req.Summary); text != "" {
			c.Summary = transcript.Cut(strings.ToValidUTF8(text, "\uFFFD"), mostSummary)
		}
		a.Checkpoint = shownCheckpoint(&c)
		return addCheckpoints(p, []state.Checkpoint{c})
	})
	a.SchemaVersion = control.SchemaVersion
	return a, derive.QueryError(s.name, err)
}

func askedTrigger(name string) (session.Trigger, error) {
	switch name {
	case "", control.TriggerManual:
		return session.TriggerManual, nil
	case control.TriggerPreHeavy:
		return session.TriggerPreHeavy, nil
	}
	return "", control.Usage(fmt.Sprintf("a checkpoint cannot be asked for with trigger %.40q", name),
		"it is manual or pre_heavy; the others come by themselves")
}

func newCheckpointID() (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name checkpoint: %w", err)
	}
	return "cp-" + hex.EncodeToString(b[:]), nil
}
