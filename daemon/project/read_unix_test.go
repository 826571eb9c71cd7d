//go:build unix

package project

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// A pipe in a cloned repository must not block the caller.
func TestConfigPipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".codetracker", "config.json")
	kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	kit.Must(t, syscall.Mkfifo(path, 0o600))
	p, err := NewFinder().Find(dir)
	kit.Check(t, errors.Is(err, ErrUnknown) && !p.Enabled, "Find = %+v, %v; want ErrUnknown", p, err)
	link(t, "/dev/zero", filepath.Join(dir, "x", ".codetracker", "config.json"))
	p, err = NewFinder().Find(filepath.Join(dir, "x"))
	kit.Check(t, errors.Is(err, ErrUnknown) && !p.Enabled, "Find = %+v, %v; want ErrUnknown", p, err)
}

// A file that may not be read may opt out.
func TestConfigForbidden(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, ".codetracker/config.json", `{}`)
	kit.Must(t, os.Chmod(path, 0))
	closed := filepath.Join(dir, "closed")
	kit.Must(t, os.Mkdir(closed, 0))
	// The hook cannot enter it either: there is no setting in it. The one above decides.
	if p, _ := walk(closed); p.Dir != dir {
		t.Errorf("in a folder that may not be entered: %+v", p)
	}
	p, err := NewFinder().Find(dir)
	if os.Geteuid() == 0 { // may read everything
		kit.Check(t, err == nil && p.Enabled, "as root: %+v, %v", p, err)
		return
	}
	kit.Check(t, errors.Is(err, ErrUnknown) && !p.Enabled, "Find = %+v, %v; want ErrUnknown", p, err)
}
