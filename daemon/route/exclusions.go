package route

import (
	"cmp"
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/state"
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

// A transcript may begin with records that name no working directory. It is then not known yet whether its project has
// opted out. Two things still keep such a project here: the transcripts in the same folder, and the directory that its
// own later lines name.

// folders are the working directories of the transcripts in each project folder, by its name. Safe for concurrent use.
type folders struct {
	mu   sync.Mutex
	cwds map[string]map[string]bool // guarded by mu
}

func (f *folders) add(folder, cwd string) {
	folder = usualFolder(folder)
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

// ofDrive begins the name of a folder for a working directory of Windows: C--w-app, and in its other forms c--w-app,
// -c-w-app and -mnt-c-w-app.
var ofDrive = regexp.MustCompile(`^(?:(?:-mnt|-cygdrive)?-([A-Za-z])-|([A-Za-z])--)`)

// usualFolder returns the name that a project's folder has for the usual path.
func usualFolder(name string) string {
	at := ofDrive.FindStringSubmatch(name)
	if at != nil && (at[1] == "" || !project.OwnFolder(strings.TrimSuffix(strings.ReplaceAll(at[0], "-", "/"), "/"))) {
		return strings.ToUpper(at[1]+at[2]) + "--" + name[len(at[0]):]
	}
	return name
}

// find returns the first working directory of a folder's transcripts for which so is true; "" when there is none.
func (f *folders) find(folder string, so func(cwd string) bool) string {
	f.mu.Lock()
	cwds := slices.Sorted(maps.Keys(f.cwds[usualFolder(folder)]))
	f.mu.Unlock()
	if i := slices.IndexFunc(cwds, so); i >= 0 {
		return cwds[i]
	}
	return ""
}

const (
	// repositoryWait is how long the first lines of a transcript wait until its repository is known.
	repositoryWait = 10 * time.Second
	repositoryPoll = 20 * time.Millisecond
	// repositoryAgain is the age at which a repository that is not known is looked at once more.
	repositoryAgain = time.Minute
)

// repositories tell repositories without a remote apart, by their first commit and the name of their folder. They are
// read in the background, each once. Safe for concurrent use.
type repositories struct {
	// kept are repositories by their folder's device and inode: one that is moved or renamed stays what it was.
	kept *state.Persisted[keptRepositories]

	reading sync.Mutex // held while one is read
	mu      sync.Mutex
	known   map[string]*repository // by the path of .git, and its device and inode; guarded by mu
}

type keptRepositories map[string]project.Repository

// repository is what is known of one.
type repository struct {
	id string    // "": nothing
	at time.Time // when it was read; zero while that goes on
}

// of returns the id of the repository with a .git folder; "" when it has none. known is false while that is being found
// out.
func (r *repositories) of(gitDir string) (id string, known bool) {
	info, err := os.Stat(gitDir)
	if err != nil {
		return "", true
	}
	folder := folderID(info)
	key := gitDir + "\x00" + folder
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.known[key]
	if x != nil && x.at.IsZero() {
		return "", false
	}
	if x != nil && (x.id != "" || time.Since(x.at) < repositoryAgain) {
		return x.id, true
	}
	r.known[key] = &repository{}
	go func() {
		id := r.read(gitDir, folder)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.known[key] = &repository{id, time.Now()}
	}()
	return "", false
}

// read finds out the id of a repository. Any failure means that it has none.
func (r *repositories) read(gitDir, folder string) string {
	r.reading.Lock()
	defer r.reading.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	now, err := project.ReadRepository(ctx, gitDir)
	if err != nil {
		return ""
	}
	if folder != "" {
		if old, ok := r.kept.Get()[folder]; ok && old.Commit == now.Commit {
			now = old
		}
		err = r.kept.Change(ctx, func(old keptRepositories) (keptRepositories, bool) {
			next := maps.Clone(old)
			if next == nil {
				next = keptRepositories{}
			}
			next[folder] = now
			return next, old[folder] != now
		})
	}
	if err != nil {
		return ""
	}
	return now.ID()
}

// recognize finds out which repository a file's project is, for those who see only hashes of paths: the remote decides,
// else its first commit and name. wait is how long a new file waits for that; others go on, and have it later.
func (r *Router) recognize(f *state.Routing, p *project.Policy, file tail.FileID) (wait time.Duration) {
	s, trusted := &f.Stream, r.rules.Load().TrustedProjects
	folder := project.SameFolder(s.Cwd, *p) // until it has a repository
	if s.Extended || s.Cwd == "" || s.Repository != "" && s.Repository != folder ||
		s.ProjectHash != project.Hash(s.Cwd, "", *p, trusted) || s.ProjectHash == p.ProjectHash {
		return 0
	}
	if p.Remote != "" {
		s.Repository = s.ProjectHash
	} else if p.GitDir != "" {
		id, known := r.repositories.of(p.GitDir)
		if left := r.wait(file, repositoryWait); !known && left > 0 {
			return min(left, repositoryPoll)
		}
		s.Repository = cmp.Or(id, folder)
	} else {
		s.Repository = folder
	}
	r.waited(file)
	if s.Repository != "" && !p.Gone {
		r.places.set(s)
	}
	return 0
}
