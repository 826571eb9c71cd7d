package derive

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// introductionsKept is how long the introduction of a session without documents is stored: much longer than Claude Code
// keeps a transcript.
const introductionsKept = 400 * 24 * time.Hour

// retryAfter is how long after a failure a save is tried again.
const retryAfter = 2 * time.Second

// Introductions stores how sessions were introduced at their first start. Callers do not wait for the disk. Its methods
// are safe for concurrent use.
type Introductions struct {
	projections *projection.DB
	log         *slog.Logger
	bell        outbox.Bell // rings when there is something to save

	saving  sync.Mutex // held while one is saved, so that its session is not forgotten meanwhile; taken before mu
	failing bool       // the last save failed; guarded by saving

	mu      sync.Mutex
	unsaved map[string]projection.Introduction // by session, not durable yet; guarded by mu
	knows   map[string]bool                    // by session: whether its Claude was introduced; some; guarded by mu
	shownAt map[string]int64                   // by session: line on which it was shown documents last; guarded by mu
	back    map[string]bool                    // sessions of which a rewind took what was shown; guarded by mu
}

// maxKnown is how many sessions are remembered as introduced or not.
const maxKnown = 4096

// LoadIntroductions returns the introductions in the state, and removes those that are too old. An inbox's Run saves
// new ones.
func LoadIntroductions(ctx context.Context, projections *projection.DB, log *slog.Logger) (*Introductions, error) {
	if err := projections.Introductions.Forget(ctx, time.Now().Add(-introductionsKept).UnixMilli()); err != nil {
		return nil, err
	}
	return &Introductions{projections: projections, log: log, bell: outbox.NewBell(),
		unsaved: map[string]projection.Introduction{}, knows: map[string]bool{},
		shownAt: map[string]int64{}, back: map[string]bool{}}, nil
}

// Get returns how a session was introduced; false if it was not.
func (s *Introductions) Get(ctx context.Context, session string) (projection.Introduction, bool, error) {
	s.mu.Lock()
	i, unsaved := s.unsaved[session]
	s.mu.Unlock()
	if unsaved {
		return i, true, nil
	}
	i, found, err := s.projections.Introductions.Get(ctx, session)
	if err != nil {
		return i, false, fmt.Errorf("read introduction: %w", err)
	}
	return i, found, nil
}

// add stores how a session is introduced, unless another request came first. It returns the stored introduction.
func (s *Introductions) add(i projection.Introduction) projection.Introduction {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.unsaved[i.Session]; ok {
		return first
	}
	s.unsaved[i.Session] = i
	s.bell.Ring()
	return i
}

// started notes that a session starts: its Claude was not introduced this time.
func (s *Introductions) started(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.know(session, false)
}

// markShown notes that a session's Claude was shown its introduction.
func (s *Introductions) markShown(ctx context.Context, session string) {
	s.mu.Lock()
	known := s.knows[session]
	s.know(session, true)
	s.mu.Unlock()
	if known {
		return
	}
	i, found, err := s.Get(ctx, session)
	if err != nil || !found || !i.NotShown {
		return // after an error it is shown once more
	}
	i.NotShown = false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved[session] = i
	s.bell.Ring()
}

// shownOn notes the line on which a transcript shows that its Claude was shown documents, or asked for a link.
func (s *Introductions) shownOn(session string, line int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shownAt) >= maxKnown {
		clear(s.shownAt)
	}
	s.shownAt[session] = line
}

// rewound notes a rewind: when it took what a session's Claude was shown documents, or may have, that is shown again.
func (s *Introductions) rewound(name string, r *session.Rewind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.shownAt[name]; known && !r.Leaves(at) {
		return
	}
	if len(s.back) >= maxKnown {
		clear(s.back)
	}
	s.back[name] = true
	s.know(name, false)
}

// wentBack reports whether a rewind took what a session's Claude was shown.
func (s *Introductions) wentBack(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back[session]
}

// know remembers whether a session's Claude was introduced. The caller holds mu.
func (s *Introductions) know(session string, shown bool) {
	if len(s.knows) >= maxKnown {
		clear(s.knows) // the state has most of it
	}
	s.knows[session] = shown
}

// missing reports whether a session's Claude was not shown its introduction.
func (s *Introductions) missing(ctx context.Context, session string) bool {
	s.mu.Lock()
	shown, known := s.knows[session]
	s.mu.Unlock()
	if known {
		return !shown
	}
	i, found, err := s.Get(ctx, session)
	if err != nil {
		return false
	}
	shown = found && !i.NotShown
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, known := s.knows[session]; known {
		return !now
	}
	s.know(session, shown)
	return !shown
}

// forget drops what is not durable yet of a session and its further files.
func (s *Introductions) forget(session string) {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := func(name string) bool { return slices.Contains(transcript.ForgetNames(name), session) }
	maps.DeleteFunc(s.unsaved, func(name string, _ projection.Introduction) bool { return of(name) })
	maps.DeleteFunc(s.knows, func(name string, _ bool) bool { return of(name) })
}

// save makes all introductions durable. It stops at the first failure.
func (s *Introductions) save(ctx context.Context) error {
	for {
		if more, err := s.saveOne(ctx); err != nil || !more {
			return err
		}
	}
}

func (s *Introductions) saveOne(ctx context.Context) (more bool, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	var i projection.Introduction
	s.mu.Lock()
	for _, i = range s.unsaved {
		break
	}
	s.mu.Unlock()
	if i.Session == "" {
		return false, nil
	}
	_, err = s.projections.Introductions.Introduce(ctx, i)
	if err != nil && !s.failing {
		s.log.Warn("cannot save how a session was introduced; retrying", "session", i.Session, "err", err)
	}
	if s.failing = err != nil; s.failing {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaved[i.Session] == i {
		delete(s.unsaved, i.Session)
	}
	return true, nil
}
