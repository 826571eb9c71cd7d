package derive

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
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// Limits of a caller's texts about a checkpoint, in characters.
const (
	maxSummary = 1000
	maxPort    = 200
)

// Checkpoints answers queries about checkpoints and budgets. It is safe for concurrent use.
type Checkpoints struct {
	Projections *projection.DB
	Deriver     *Deriver
}

// List returns a session's checkpoints, or those of all sessions if file is 0, newest first. It first folds the session
// to its end.
func (c *Checkpoints) List(ctx context.Context, file tail.FileID, page control.Page) (control.Checkpoints, error) {
	a := control.Checkpoints{SchemaVersion: control.SchemaVersion, Checkpoints: []control.Checkpoint{}}
	if file != 0 {
		err := c.Deriver.Query(ctx, file, func(*FoldStep) error { return nil })
		// If the file is gone its checkpoints stay. If it was never read it has none.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, state.ErrUnknownFile) {
			return a, fmt.Errorf("list checkpoints: %w", err)
		}
	}
	list, more, err := c.Projections.Checkpoints.List(ctx, file, page.Offset, page.Limit)
	if err != nil {
		return a, err
	}
	for i := range list {
		a.Checkpoints = append(a.Checkpoints, wireCheckpoint(&list[i]))
	}
	if more {
		a.Next = page.Offset + len(list)
	}
	return a, nil
}

// Get returns the checkpoint with an id.
func (c *Checkpoints) Get(ctx context.Context, id string) (control.CheckpointAnswer, error) {
	p, found, err := c.Projections.Checkpoints.Checkpoint(ctx, id)
	if err == nil && !found {
		err = control.NewError(control.CodeNoCheckpoint, fmt.Sprintf("there is no checkpoint %.40q", id),
			"`ccship checkpoint list` names them")
	}
	return control.CheckpointAnswer{SchemaVersion: control.SchemaVersion, Checkpoint: wireCheckpoint(&p)}, err
}

// Create makes a checkpoint of a session as it is now. It is durable when Create returns. name is the session's.
func (c *Checkpoints) Create(ctx context.Context, file tail.FileID, name string,
	req control.CheckpointRequest) (a control.CheckpointAnswer, err error) {
	trigger, err := requestTrigger(req.Trigger)
	if err != nil {
		return a, err
	}
	if utf8.RuneCountInString(req.PortID) > maxPort {
		return a, control.Usage(fmt.Sprintf("the port has more than %d characters", maxPort), "use a short name")
	}
	id, err := newID()
	if err != nil {
		return a, err
	}
	err = c.Deriver.Query(ctx, file, func(s *FoldStep) error {
		if !hasCheckpoints(s) {
			return control.Usage("an agent's transcript has no checkpoints",
				"name the session that started it: "+s.Facts.Stream.Parent)
		}
		p := newCheckpoint(s, s.Detector.Current(s.Session, trigger, max(0, s.Line-1)))
		p.ID, p.Port, p.At = id, s.Mask(req.PortID), time.Now().UTC().Truncate(time.Millisecond)
		if text := strings.TrimSpace(req.Summary); text != "" {
			p.Summary = transcript.Cut(s.Mask(strings.ToValidUTF8(text, "\uFFFD")), maxSummary)
		}
		a.Checkpoint = wireCheckpoint(&p)
		return addToEffects(s, []projection.Checkpoint{p})
	})
	a.SchemaVersion = control.SchemaVersion
	return a, QueryError(name, err)
}

func requestTrigger(name string) (session.Trigger, error) {
	switch name {
	case "", control.TriggerManual:
		return session.TriggerManual, nil
	case control.TriggerPreHeavy:
		return session.TriggerPreHeavy, nil
	}
	return "", control.Usage(fmt.Sprintf("invalid trigger %.40q", name),
		"use manual or pre_heavy; checkpoints with another trigger are made automatically")
}

func newID() (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name checkpoint: %w", err)
	}
	return "cp-" + hex.EncodeToString(b[:]), nil
}

// wireCheckpoint converts a checkpoint to the wire type.
func wireCheckpoint(c *projection.Checkpoint) control.Checkpoint {
	return control.Checkpoint{
		ID: c.ID, SessionID: c.Session, PortID: c.Port, TokensUsed: c.Tokens, TokenBudget: c.Budget, TriggerType: c.Trigger,
		ContextHash: c.ContextHash, Summary: c.Summary, ActiveFiles: append([]string{}, c.ActiveFiles...), CreatedAt: c.At,
	}
}
