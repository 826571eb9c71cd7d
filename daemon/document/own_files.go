package document

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// Guard keeps ccship's own files from being linked, read or sent. Its methods are safe for concurrent use.
type Guard struct {
	settings Settings
	db       *state.DB // knows the projects that have their own server, and so a key
}

// NewGuard returns a guard.
func NewGuard(settings Settings, db *state.DB) *Guard { return &Guard{settings, db} }

// Check refuses the files that hold ccship's secrets and state, under any name or link. path is where the open file
// info lies, links resolved. The error is a *refusedError.
func (g *Guard) Check(path string, info fs.FileInfo) error {
	if !g.isOwn(path, info) {
		return nil
	}
	return &refusedError{
		Message: fmt.Sprintf("%s is one of ccship's own files",
			path), Hint: "its state, its configuration and its keys are never sent",
	}
}

func (g *Guard) isOwn(path string, info fs.FileInfo) bool {
	if project.IsCredentials(path) {
		return true
	}
	c := g.settings.Config()
	for _, dir := range c.OwnFolders() {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	for _, name := range g.ownFiles(c, filepath.Dir(path)) {
		if known, err := os.Stat(name); err == nil && os.SameFile(known, info) {
			return true
		}
	}
	return false
}

// ownFiles returns ccship's own files whose other names must be refused too, for a file in a folder.
func (g *Guard) ownFiles(c *config.Config, folder string) []string {
	files := []string{c.Path, c.APIKeyFile, c.Socket}
	for _, dir := range c.OwnFolders() {
		entries, _ := os.ReadDir(dir) // a folder that cannot be listed may not exist
		for _, e := range entries {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	for dir, last := folder, ""; dir != last; last, dir = dir, filepath.Dir(dir) { // and all above it
		files = append(files, project.CredentialsPath(dir))
	}
	for _, dest := range g.db.Outbox.KnownDestinations() {
		if _, dir, own := project.SplitDestination(dest); own {
			files = append(files, project.CredentialsPath(dir))
		}
	}
	return files
}

// Open opens a file to send it, through a mask, unless the file belongs to ccship by now.
func (g *Guard) Open(root, name string, mask mask) (outbox.Content, error) {
	c, err := openToSend(root, name, g.Check, mask)
	if err != nil {
		return nil, err // not a nil *openFile in an interface
	}
	return c, nil
}
