package route

import (
	"sync"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
)

// A working directory that is gone says nothing any more: a work tree that was removed would be a project of its own.
// Transcripts that were identified while it was there still say what it was.

// places are the projects of working directories, of those that said more than their own path. Safe for concurrent use.
type places struct {
	mu  sync.Mutex
	cwd map[string]place // guarded by mu
}

// place is the project of a working directory, as the newest of its streams has it.
type place struct {
	stream                    uint64
	hash, project, repository string
}

// load adds what a stream of an earlier run was identified as.
func (p *places) load(s *outbox.Stream) {
	if known, ok := p.find(s.Cwd); !ok || s.ID > known.stream {
		p.set(s)
	}
}

// set keeps what a working directory that is there says.
func (p *places) set(s *outbox.Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cwd == nil {
		p.cwd = map[string]place{}
	}
	if s.Cwd == "" || s.Repository == "" && s.ProjectHash == project.Hash(s.Cwd, "", project.Policy{}, nil) {
		delete(p.cwd, s.Cwd)
		return
	}
	p.cwd[s.Cwd] = place{s.ID, s.ProjectHash, s.Project, s.Repository}
}

func (p *places) find(cwd string) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.cwd[cwd]
	return at, ok
}
