package route

import (
	"maps"
	"slices"
	"sync"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/tail"
)

// Exclusion is why the lines of a file stay on this machine. Its project or the user asks for it: it is no failure.
type Exclusion struct {
	Why string
	Cwd string // the working directory whose project is excluded; "" when the reason is another
}

// exclusions are the excluded files. It is safe for concurrent use.
type exclusions struct {
	mu    sync.Mutex
	files map[tail.FileID]Exclusion // guarded by mu
}

func (x *exclusions) add(id tail.FileID, e Exclusion) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.files == nil {
		x.files = map[tail.FileID]Exclusion{}
	}
	x.files[id] = e
}

func (x *exclusions) remove(id tail.FileID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.files, id)
}

// Excluded returns the excluded files, including those that are no longer on disk.
func (r *Router) Excluded() map[tail.FileID]Exclusion {
	r.exclusions.mu.Lock()
	defer r.exclusions.mu.Unlock()
	return maps.Clone(r.exclusions.files)
}

// ExcludedOnDisk returns the transcripts on disk that are excluded, with the reasons.
func (r *Router) ExcludedOnDisk(files Files) map[tail.FileID]string {
	all := r.Excluded()
	out := make(map[tail.FileID]string, len(all))
	for _, id := range files.Here(slices.Collect(maps.Keys(all))) {
		out[id] = all[id].Why
	}
	return out
}

// ExcludeForgotten notes files as excluded because their session was forgotten.
func (r *Router) ExcludeForgotten(files []tail.Tracked) {
	for _, t := range files {
		r.exclusions.add(t.File.ID, Exclusion{Why: Forgotten})
	}
}

// ExclusionEnded reports whether a project that was excluded no longer is, and removes its files from the list.
func (r *Router) ExclusionEnded() bool {
	included := map[string]bool{}
	for _, e := range r.Excluded() {
		included[e.Cwd] = false
	}
	ended := false
	for cwd := range included {
		included[cwd] = cwd != "" && enabled(r.projects, cwd)
		ended = ended || included[cwd]
	}
	if ended {
		r.exclusions.mu.Lock()
		defer r.exclusions.mu.Unlock()
		maps.DeleteFunc(r.exclusions.files, func(_ tail.FileID, e Exclusion) bool { return included[e.Cwd] })
	}
	return ended
}

// enabled reports whether the project of a working directory may be sent.
func enabled(projects *project.Finder, cwd string) bool {
	policy, _ := projects.Find(cwd)
	return policy.Enabled
}
