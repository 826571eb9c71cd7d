package config

import (
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/sys"
)

// HomeVariable is the environment variable that names the home folder.
const HomeVariable = sys.HomeVariable

// pattern expands ~ and checks a pattern of folders.
func pattern(p sys.Places, text string) (string, error) {
	if text == "~" || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, `~\`) && filepath.Separator == '\\' {
		text = project.Literal(p.Home) + filepath.ToSlash(text[1:])
	}
	if err := project.CheckPattern(text); err != nil {
		return "", &Error{Message: quote(text) + ": " + err.Error(),
			Hint: "write a folder in full, or a pattern such as ~/clients/* or **/private"}
	}
	return text, nil
}

// OwnFolders returns the existing folders that hold only files of ccship and its server, links resolved, together with
// their subfolders that hold secrets.
func (c *Config) OwnFolders() (dirs []string) {
	all := []string{c.StateDir}
	if up := filepath.Dir(c.StateDir); filepath.Base(up) == "up" {
		all = append(all, up) // a daemon of `ccship up` has its state next to the server's
	}
	if p, err := sys.FindPlaces(c.env); err == nil {
		all = append(all, p.Config, p.State, filepath.Join(filepath.Dir(p.State), "ccship-server"),
			filepath.Join(p.Home, ".local", "state", "ccship-server"))
	}
	for _, dir := range all {
		for _, below := range []string{"", "up", filepath.Join("up", "state")} {
			if real, err := filepath.EvalSymlinks(filepath.Join(dir, below)); err == nil {
				dirs = append(dirs, real)
			}
		}
	}
	return dirs
}
