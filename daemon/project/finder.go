package project

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

// DefaultRecheck is the largest age of a cached answer.
const DefaultRecheck = 3 * time.Second

// maxCached is the largest number of cached working directories.
const maxCached = 4096

// Finder finds out what working directories say, and caches it for a few seconds. Safe for concurrent use: a directory
// on a disk that hangs delays only queries for that directory.
type Finder struct {
	Recheck time.Duration // how old an answer may be; set before first use
	Home    string        // where the search for IgnoreName ends; "": at the root. Set before first use

	drives string // of Windows: the folder that has them; "" on other systems

	mu      sync.Mutex
	cache   map[string]*answer // by working directory; guarded by mu
	exclude patterns           // guarded by mu
}

// answer is what one working directory said last.
type answer struct {
	mu     sync.Mutex // held while its files are read
	at     time.Time
	policy Policy
	err    error
}

// NewFinder returns a Finder with the defaults. It owns nothing that must be closed.
func NewFinder() *Finder {
	return &Finder{Recheck: DefaultRecheck, drives: drives(), cache: map[string]*answer{}}
}

// Exclude opts out the folders that match one of the patterns (see CheckPattern), and all below them. It replaces the
// patterns given before. Patterns use slashes or the system's separators, with ~ already expanded.
func (f *Finder) Exclude(globs []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exclude = newPatterns(globs)
	f.cache = map[string]*answer{} // an answer in progress is not kept: it may use the old patterns
}

// Find returns what applies to a working directory: what the nearest .codetracker folder with a config.json or
// credentials.json says, from cwd up to the root of the file system. An opt-out in any folder above applies too: a
// nested project, which may be a clone, cannot undo it. The same is true of an excluded folder and of a file
// named IgnoreName, and of the repository whose linked work tree cwd lies in. If nothing is found, the project is
// enabled with the defaults.
//
// A config.json that cannot be read or parsed may be an opt-out, so its project is held back: Find returns an error
// that wraps ErrUnknown, and a Policy that is not Enabled. A later call sees whether the file was repaired. The same
// holds while the git remote cannot be read for lack of file descriptors and the like.
//
// A cwd that is not an absolute path of this system (a transcript from elsewhere) has the defaults.
func (f *Finder) Find(cwd string) (Policy, error) {
	if cwd = native(cwd, f.drives); !filepath.IsAbs(cwd) {
		return Policy{Enabled: true, MaxEntries: DefaultMaxEntries}, nil
	}
	a, exclude := f.answer(cwd)
	a.mu.Lock()
	defer a.mu.Unlock()
	if age := time.Since(a.at); a.at.IsZero() || age < 0 || age >= f.Recheck {
		a.policy, a.err = f.look(cwd, exclude)
		a.at = time.Now()
	}
	return a.policy, a.err
}

// answer returns the cache entry of a directory, made if missing, with the patterns for it.
func (f *Finder) answer(cwd string) (*answer, patterns) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.cache[cwd]
	if a == nil {
		if len(f.cache) >= maxCached {
			clear(f.cache) // rare and cheap to fill again
		}
		a = &answer{}
		f.cache[cwd] = a
	}
	return a, f.exclude
}

// look reads what cwd says, without the cache.
func (f *Finder) look(cwd string, exclude patterns) (Policy, error) {
	policy, err := f.read(cwd, exclude)
	if f.Home != "" && filepath.Dir(policy.GitDir) == filepath.Clean(f.Home) {
		policy.GitDir = "" // what lies in a home is not one project
	}
	return policy, err
}

func (f *Finder) read(cwd string, exclude patterns) (Policy, error) {
	policy, err := f.allowed(cwd, exclude)
	if err != nil || !policy.Enabled {
		return policy, err
	}
	if policy.Remote, policy.GitDir, err = findGit(cwd); err != nil {
		return Policy{Dir: policy.Dir}, unknown("read git remote of "+cwd, err)
	}
	_, err = os.Stat(cwd)
	policy.Gone = err != nil && absent(err)
	if policy.Repository, err = findRepository(cwd, policy.Gone); err != nil {
		return Policy{Dir: policy.Dir}, unknown("look for the repository of "+cwd, err)
	}
	if policy.Repository == "" {
		return policy, nil
	}
	if main, err := f.allowed(policy.Repository, exclude); err != nil || !main.Enabled {
		return main, err // a work tree elsewhere has what its repository has
	}
	if policy.Remote != "" {
		return policy, nil
	}
	policy.Remote, policy.GitDir, err = findGit(policy.Repository) // of a work tree elsewhere that is gone
	if err != nil {
		return Policy{Dir: policy.Dir}, unknown("read git remote of "+policy.Repository, err)
	}
	return policy, nil
}

// allowed returns what the folders from cwd upwards say; it is not Enabled when one of them is excluded.
func (f *Finder) allowed(cwd string, exclude patterns) (Policy, error) {
	if pattern := exclude.match(cwd); pattern != "" {
		return Policy{Why: ExcludedBy(pattern)}, nil
	}
	marker, err := ignored(cwd, f.Home)
	if err != nil {
		return Policy{}, unknown("look for "+IgnoreName+" of "+cwd, err)
	}
	if marker != "" {
		return Policy{Dir: filepath.Dir(marker), Why: "excluded by " + marker}, nil
	}
	return walk(cwd)
}

// walk reads the .codetracker folders from cwd upwards: the nearest decides, any may opt out.
func walk(cwd string) (Policy, error) {
	policy := Policy{Enabled: true, MaxEntries: DefaultMaxEntries}
	decided := false
	for dir := range upwards(cwd) {
		p, found, err := readPolicy(dir)
		if err != nil {
			return p, err
		}
		if found && !p.Enabled {
			p.Why = "conversation_tracking.enabled is false in " + p.Dir
			return p, nil
		}
		if found && !decided {
			policy, decided = p, true
		} else if p.Advice != "" {
			policy.advisef("%s", p.Advice)
		}
	}
	return policy, nil
}

// upwards yields dir and all folders above it. It follows names, not links, so it always ends.
func upwards(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for yield(dir) {
			above := filepath.Dir(dir)
			if above == dir {
				return
			}
			dir = above
		}
	}
}

// Hash returns the project_hash of the wire: the one in a trusted project's credentials, else the SHA-256 in hex of its
// git remote, else of its working directory (of a worktree, its repository), else of the name of the folder that holds
// its transcripts. p is the result of Find for cwd. The hash decides who can see a session, so credentials that may
// have come with a cloned repository do not choose it.
func Hash(cwd, folder string, p Policy, trusted []string) string {
	text := folder
	switch {
	case p.ProjectHash != "" && Trusted(p.Dir, trusted):
		return p.ProjectHash
	case p.Remote != "":
		text = p.Remote
	case cwd != "":
		text = cmp.Or(p.Repository, cwd)
	}
	return hashOf(text)
}

// SameFolder returns the hash that a folder without a repository has by its usual path; "" if cwd is that.
func SameFolder(cwd string, p Policy) string {
	dir := cmp.Or(p.Repository, cwd)
	if usual := Usual(dir); usual != dir {
		return hashOf(usual)
	}
	return ""
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// The hook keeps its files in a folder of the project.
const (
	folderName      = ".codetracker"
	configName      = "config.json"
	credentialsName = "credentials.json"
)

// CredentialsPath returns the file in which the project in dir keeps the key of its server.
func CredentialsPath(dir string) string { return filepath.Join(dir, folderName, credentialsName) }

// IsCredentials reports whether a path names the credentials of any project. It ignores case, because on some systems
// case makes no difference.
func IsCredentials(path string) bool {
	return strings.EqualFold(filepath.Base(path), credentialsName) &&
		strings.EqualFold(filepath.Base(filepath.Dir(path)), folderName)
}

const (
	maxFile     = 1 << 20  // a larger file is not a configuration
	maxSnapshot = 16 << 20 // lists every file of the project, so it may be long
)

// errTooLarge is permanent: the file exists but is not usable.
var errTooLarge = errors.New("too large")

// permanent reports whether another attempt to read cannot help.
func permanent(err error) bool {
	return errors.Is(err, sys.ErrNotFile) || errors.Is(err, errTooLarge) || errors.Is(err, fs.ErrPermission)
}

// readFile reads a small file, without its byte order mark. A cloned repository may hold a pipe in its place.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read %s: %w: more than %d bytes", path, errTooLarge, limit)
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil
}

// changedWithin reports whether a file was written within the last d. A date in the future does not count as recent.
func changedWithin(path string, d time.Duration) bool {
	info, err := os.Stat(path)
	if err != nil {
		return true
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < d
}
