package daemon

import (
	"maps"
	"slices"
	"sync"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// A transcript may begin with records that name no working directory, and then nobody knows yet whether its project has
// opted out. Two things keep such a project here all the same: the transcripts beside it, and the directory that its
// own later lines name.

// folders are the working directories of the transcripts in each project folder, by its name. Safe for concurrent use.
type folders struct {
	mu   sync.Mutex
	cwds map[string]map[string]bool // guarded by mu
}

func (f *folders) add(folder, cwd string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cwds == nil {
		f.cwds = map[string]map[string]bool{}
	}
	if f.cwds[folder] == nil {
		f.cwds[folder] = map[string]bool{}
	}
	f.cwds[folder][cwd] = true
}

// find is the first working directory of a folder's transcripts that is so; "" when there is none.
func (f *folders) find(folder string, so func(cwd string) bool) string {
	f.mu.Lock()
	cwds := slices.Sorted(maps.Keys(f.cwds[folder]))
	f.mu.Unlock()
	if i := slices.IndexFunc(cwds, so); i >= 0 {
		return cwds[i]
	}
	return ""
}

// headOf is what a chunk says: its whole lines, else the one that has no end yet.
func headOf(c *tail.Chunk) []byte {
	if len(c.Lines) > 0 {
		return c.Lines
	}
	return c.Provisional
}

// learnCwd finds the working directory of a file whose first lines named none. Name and hash of its stream stay.
func learnCwd(f *state.Facts, c *tail.Chunk) {
	if f.Stream.Cwd != "" || f.Stream.Extended {
		return
	}
	if cwd, ok := transcript.FirstCwd(headOf(c)); ok {
		f.Stream.Cwd = cwd
	}
}
