package document

import (
	"path/filepath"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/tail"
)

// Location is where a session was started, and where its documents go.
type Location struct {
	Session  string
	File     tail.FileID // its main transcript; 0 until something of it is delivered
	Cwd      string      // where it was started
	Dest     string      // destination of its lines; "": none yet
	Withheld string      // why nothing of it is sent; "" if it is sent
	Written  time.Time   // when its transcript was last written
}

// Problems of a document that do not come from its file.
const (
	elsewhereProblem = "the working directory is another folder than when it was linked; link it again to have it " +
		"read there"
	notSentProblem = "its content is sent again: the file was away, or another, when it was to be sent"
)

// problem returns why a session's documents are not sent; "" if they are.
func (l *Location) problem() string {
	if l.Withheld == "" {
		return ""
	}
	return "it stays on this machine: " + l.Withheld
}

// path returns where a document of the session lies, as the transcript spells the folder.
func (l *Location) path(d *trackedDocument) string {
	return filepath.Join(l.Cwd, filepath.FromSlash(d.Path))
}

// open opens the working directory of a session. It does not read ccship's own files, and masks secrets in others for
// the session's server.
func (t *Tracker) open(loc *Location) (*folder, error) {
	folder, err := openFolder(loc.Cwd)
	if err == nil {
		folder.Guard, folder.Mask = t.Guard.Check, t.Masking.For(loc.Dest, loc.Cwd).ReaderAt
	}
	return folder, err
}

// canSend reports whether something can be queued for a session's server.
func (t *Tracker) canSend(loc Location) bool {
	return loc.Dest != "" && loc.Withheld == "" && t.Projections.State.HasCapacity(true)
}

const (
	policyKept  = 10 * time.Second // how long a folder's policy is cached
	maxPolicies = 4096             // how many folders are cached
)

// policyCache says, by folder, whether files may be sent.
type policyCache map[string]policy

type policy struct {
	excluded string // why files are not sent; "" if they may be
	at       time.Time
	conf     *config.Config // in force at that time
}

// locationOf narrows a session's location to the document at a path, which may lie in an excluded project in a
// subfolder. The caller holds work.
func (t *Tracker) locationOf(loc Location, path string) Location {
	if loc.Withheld != "" {
		return loc
	}
	dir, conf := filepath.Dir(path), t.Settings.Config()
	p, known := t.policies[dir]
	if age := time.Since(p.at); !known || p.conf != conf || age < 0 || age >= policyKept {
		p = policy{t.Locator.Excluded(dir), time.Now(), conf}
		if real, err := filepath.EvalSymlinks(dir); p.excluded == "" && err == nil && real != dir {
			p.excluded = t.Locator.Excluded(real)
		}
		if t.policies == nil || len(t.policies) >= maxPolicies {
			t.policies = policyCache{}
		}
		t.policies[dir] = p
	}
	if p.excluded != "" {
		loc.Withheld, loc.Dest = p.excluded, ""
	}
	return loc
}
