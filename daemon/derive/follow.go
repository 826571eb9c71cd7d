package derive

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Claude Code starts the hook before a tool some 50 ms before it writes down the answer that calls the tool. A hook
// that nobody waits for lets the daemon read that answer first when it may exceed a mark: the model is notified a
// request earlier.

const (
	// nearPercent is the part of the token budget from which on the next answer may exceed a mark.
	nearPercent = 60
	// followTime is how long a hook lets the daemon read; it takes a second in all.
	followTime = 900 * time.Millisecond
	// toolsFollowed is how many tool calls of a session are remembered as read.
	toolsFollowed = 64
	// sessionsFollowed is how many sessions are: most that end nearly full are never written again.
	sessionsFollowed = 256
)

// follow knows which tool calls were read of the sessions whose context is nearly full. It is safe for concurrent use.
type follow struct {
	mu       sync.Mutex
	sessions map[string]*nearlyFull // guarded by mu
}

// nearlyFull is such a session.
type nearlyFull struct {
	tools   []string                   // ids that were read, oldest first
	waiting map[string][]chan struct{} // by id; closed once it was read
}

func newFollow() *follow { return &follow{sessions: map[string]*nearlyFull{}} }

// context notes how full a session is.
func (f *follow) context(session string, tokens, limit int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[session]
	switch near := limit > 0 && tokens >= limit/100*nearPercent; {
	case near && s == nil:
		for other, x := range f.sessions { // any: its Claude is notified a request later
			if len(f.sessions) < sessionsFollowed {
				break
			}
			x.release()
			delete(f.sessions, other)
		}
		f.sessions[session] = &nearlyFull{waiting: map[string][]chan struct{}{}}
	case !near && s != nil:
		s.release()
		delete(f.sessions, session)
	}
}

func (s *nearlyFull) release() {
	for _, waiting := range s.waiting {
		for _, c := range waiting {
			close(c)
		}
	}
	clear(s.waiting)
}

// read notes that tool calls were read, and that what follows from them is in the state.
func (f *follow) read(session string, tools []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[session]
	if s == nil {
		return
	}
	s.tools = append(s.tools, tools...)
	s.tools = slices.Delete(s.tools, 0, max(0, len(s.tools)-toolsFollowed))
	for _, tool := range tools {
		for _, c := range s.waiting[tool] {
			close(c)
		}
		delete(s.waiting, tool)
	}
}

// await returns when a tool call of a session was read, or cannot matter, or takes too long.
func (f *follow) await(ctx context.Context, session, tool string) {
	f.mu.Lock()
	s := f.sessions[session]
	if s == nil || slices.Contains(s.tools, tool) {
		f.mu.Unlock()
		return
	}
	read := make(chan struct{})
	s.waiting[tool] = append(s.waiting[tool], read)
	f.mu.Unlock()
	late := time.NewTimer(followTime)
	defer late.Stop()
	select {
	case <-read:
		return
	case <-late.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	left := slices.DeleteFunc(s.waiting[tool], func(c chan struct{}) bool { return c == read })
	if s.waiting[tool] = left; len(left) == 0 {
		delete(s.waiting, tool)
	}
}

// forget drops what is known of a session.
func (f *follow) forget(session string) { f.context(session, 0, 0) }
