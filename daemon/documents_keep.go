package daemon

import (
	"path/filepath"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/document/file"
	"github.com/ccship/ccship/state"
)

// What keeps a document from being read or sent, beside what is wrong with its file.
const (
	elsewhereProblem = "the working directory is another folder than when it was linked; link it again to have it read there"
	missedProblem    = "its content is sent again: the file was away, or another, when it was to be sent"
)

// open opens the working directory of a session; ccship's own files are not read in it.
func (x *documents) open(cwd string) (*file.Folder, error) {
	folder, err := file.OpenFolder(cwd)
	if err == nil {
		folder.Guard = x.guard
	}
	return folder, err
}

// elsewhere says whether the working directory is another folder than when the document was linked. Its device may have
// another number since a restart.
func (p *paper) elsewhere(id file.Identity) bool {
	now := state.Folder(id)
	if now.Inode == 0 || p.Folder.Inode != 0 && (p.Folder.Inode != now.Inode || p.placed && p.Folder.Device != now.Device) {
		return now.Inode != 0
	}
	p.Folder, p.placed = now, true
	return false
}

// path is where a document of the session is, as its transcript names the folder.
func (s *site) path(p *paper) string { return filepath.Join(s.cwd, filepath.FromSlash(p.Path)) }

// optoutKept is how long it is believed what a folder says about what is in it.
const optoutKept = 10 * time.Second

// optouts are folders that were asked whether what is in them may be sent, by path.
type optouts map[string]optoutAnswer

type optoutAnswer struct {
	why  string
	at   time.Time
	conf *config.Config // that held then
}

// mostOptouts bounds how many folders are remembered.
const mostOptouts = 4096

// within is the site as it is for the document at a path: it may lie in a project below the session's whose files stay
// here. The caller holds work.
func (x *documents) within(s site, path string) site {
	if s.withheld != "" {
		return s
	}
	dir, conf := filepath.Dir(path), x.conf()
	a, known := x.optouts[dir]
	if age := time.Since(a.at); !known || a.conf != conf || age < 0 || age >= optoutKept {
		a = optoutAnswer{x.optout(dir), time.Now(), conf}
		if real, err := filepath.EvalSymlinks(dir); a.why == "" && err == nil && real != dir {
			a.why = x.optout(real)
		}
		if x.optouts == nil || len(x.optouts) >= mostOptouts {
			x.optouts = optouts{}
		}
		x.optouts[dir] = a
	}
	if a.why != "" {
		s.withheld, s.dest = a.why, ""
	}
	return s
}

// missed hears that a document's newest version could not be sent. What is on disk is looked at again.
func (x *documents) missed(m state.MissedDocument) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shelves[m.Session]
	if s == nil {
		return
	}
	p, known := s.papers[m.Path]
	if !known {
		return
	}
	p.misses++
	p.Dest = ""
	s.papers[m.Path] = p
	if soon := time.Now().Add(hotLook); s.due.After(soon) {
		s.due = soon
	}
	x.ring()
}
