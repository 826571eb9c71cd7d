package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/state"
)

// statePath is the daemon's state file.
func (x *exam) statePath() string { return filepath.Join(x.o.Config.StateDir, "state.db") }

func checkState(ctx context.Context, x *exam) []Finding {
	path := x.statePath()
	found := x.looseState()
	if aside, err := filepath.Glob(escapeGlob(path) + ".corrupt-*"); err == nil && len(aside) > 0 {
		found = append(found, Finding{
			Level: Note, Text: "a damaged state was set aside, and every transcript sent again", Detail: strings.Join(aside, ", "),
			Fix: "check the disk; the file can be removed when nothing is missed",
		})
	}
	switch err := state.Check(ctx, path); {
	case err == nil:
		if len(found) == 0 {
			return fine("whole: " + path)
		}
	case errors.Is(err, fs.ErrNotExist):
		if x.daemon().client != nil && x.daemon().socket != x.o.ForeignSocket {
			found = append(found, Finding{Level: Note, Text: "the daemon keeps its state elsewhere than " + path})
		}
	case errors.Is(err, state.ErrCorrupt):
		f := Finding{Level: Fail, Text: "the state file is damaged", Detail: err.Error(), Fix: "check the disk, then `ccship restart`: it is set aside, and every transcript sent again"}
		if x.daemon().client == nil {
			f.Fix = "check the disk, then `ccship start`: it is set aside, and every transcript sent again"
		}
		found = append(found, f)
	case ended(ctx, err):
		found = append(found, Finding{Level: Note, Text: "the state file is too large to be read in time", Detail: path})
	default:
		f := explained(Fail, err)
		f.Fix = "make it readable and writable for this user"
		found = append(found, f)
	}
	return found
}

// looseState finds what others may read or change.
func (x *exam) looseState() []Finding {
	var found []Finding
	for _, part := range []struct {
		path, what string
		mode       fs.FileMode
	}{{x.o.Config.StateDir, "the state folder", 0o700}, {x.statePath(), "the state file", 0o600}} {
		if info, err := os.Stat(part.path); err == nil && !onlyOwners(info.Mode()) && ours(info) {
			found = append(found, loose(part.path, part.what, info, part.mode))
		}
	}
	return found
}

// escapeGlob makes a path a pattern of itself.
func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // there is no escaping; what does not match is not told
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func checkDisk(_ context.Context, x *exam) []Finding {
	dir := x.o.Config.StateDir
	for !exists(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	free, head, err := state.DiskSpace(dir, x.o.Config.HeadRoom)
	if err != nil {
		return []Finding{explained(Warn, err)}
	}
	text := fmt.Sprintf("%s free for state and outbox", size(free))
	f := Finding{Text: text, Detail: fmt.Sprintf("below %s reading stops, and nothing more is queued", size(head)), Fix: "free disk space, or lower head_room"}
	switch {
	case free < head:
		f.Level, f.Text = Fail, "the disk is nearly full: "+text
	case free < 2*head:
		f.Level, f.Text = Warn, "the disk is filling up: "+text
	default:
		return fine(text)
	}
	return []Finding{f}
}

// size is bytes in a unit of powers of 1000.
func size(n uint64) string {
	switch {
	case n < 1e6:
		return fmt.Sprintf("%d kB", n/1e3)
	case n < 1e9:
		return fmt.Sprintf("%d MB", n/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
