package route

import (
	"context"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

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
	if s.Extended || s.Cwd == "" || s.Repository != "" || s.ProjectHash != project.Hash(s.Cwd, "", *p, trusted) ||
		s.ProjectHash == p.ProjectHash {
		return 0
	}
	if p.Remote != "" {
		s.Repository = s.ProjectHash
	} else if p.GitDir != "" {
		id, known := r.repositories.of(p.GitDir)
		if left := r.wait(file, repositoryWait); !known && left > 0 {
			return min(left, repositoryPoll)
		}
		s.Repository = id
	}
	r.waited(file)
	if s.Repository != "" && !p.Gone {
		r.places.set(s)
	}
	return 0
}
