package route

import (
	"maps"
	"slices"
	"sync"
)

// A transcript may begin with records that name no working directory. It is then not known yet whether its project has
// opted out. Two things still keep such a project here: the transcripts in the same folder, and the directory that its
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

// find returns the first working directory of a folder's transcripts for which so is true; "" when there is none.
func (f *folders) find(folder string, so func(cwd string) bool) string {
	f.mu.Lock()
	cwds := slices.Sorted(maps.Keys(f.cwds[folder]))
	f.mu.Unlock()
	if i := slices.IndexFunc(cwds, so); i >= 0 {
		return cwds[i]
	}
	return ""
}
