package daemon

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/document/file"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
)

// protects refuses the files that ccship keeps its secrets and its state in, by whatever name or link they are opened:
// path is where the open file info lies, links resolved. projects are folders whose keys open servers.
func protects(c *config.Config, path string, info fs.FileInfo, projects []string) error {
	own := project.IsCredentials(path)
	files := []string{c.Path, c.APIKeyFile, c.Socket}
	for _, dir := range c.OwnFolders() {
		rel, err := filepath.Rel(dir, path)
		own = own || err == nil && filepath.IsLocal(rel)
		entries, _ := os.ReadDir(dir) // what cannot be listed may not exist
		for _, e := range entries {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	for dir := range above(filepath.Dir(path)) {
		projects = append(projects, dir)
	}
	for _, dir := range projects {
		files = append(files, project.CredentialsPath(dir))
	}
	for i := 0; i < len(files) && !own; i++ {
		known, err := os.Stat(files[i])
		own = err == nil && os.SameFile(known, info)
	}
	if !own {
		return nil
	}
	return &file.Refusal{Message: fmt.Sprintf("%s is one of ccship's own files", path), Hint: "its state, its configuration and its keys are never sent"}
}

// above yields a folder and all above it.
func above(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for last := ""; dir != last; last, dir = dir, filepath.Dir(dir) {
			if !yield(dir) {
				return
			}
		}
	}
}

// protects refuses ccship's own files: see the function protects.
func (d *Daemon) protects(path string, info fs.FileInfo) error {
	var projects []string
	for _, dest := range d.db.KnownDestinations() {
		if _, dir, own := strings.Cut(dest, "#"); own {
			projects = append(projects, dir)
		}
	}
	return protects(d.conf.Load(), path, info, projects)
}

// openBlob opens a file that is to be sent, unless it is one of ccship's own by now.
func (d *Daemon) openBlob(root, name string) (outbox.Content, error) {
	c, err := file.OpenToSend(root, name, d.protects)
	if err != nil {
		return nil, err // not a nil *file.OpenFile in an interface
	}
	return c, nil
}
