package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/state"
)

// statePath returns the daemon's state file.
func (x *exam) statePath() string { return filepath.Join(x.o.Config.StateDir, "state.db") }

func checkState(ctx context.Context, x *exam) []Finding {
	path := x.statePath()
	found := x.looseState()
	//nolint:forbidigo // another check reports a folder that cannot be listed
	if aside, err := filepath.Glob(escapeGlob(path) + ".corrupt-*"); err == nil && len(aside) > 0 {
		found = append(found, Finding{
			Level: Note, Text: "a damaged state file was set aside, and every transcript is sent again",
			Detail: strings.Join(aside, ", "),
			Fix:    "`ccship verify --repair` sends what the server lacks; then delete the file, and check the disk",
		})
	}
	switch err := state.Check(ctx, path); {
	case slices.ContainsFunc(x.daemon().status.Advice, func(a control.Advice) bool { return a.Kind == "state_gone" }):
		return found // the daemon's advice says it
	case err == nil:
		if len(found) == 0 {
			return fine("no damage: " + path)
		}
	case errors.Is(err, fs.ErrNotExist):
		if x.daemon().client != nil && x.daemon().socket != x.o.ForeignSocket {
			found = append(found, Finding{Level: Note, Text: "the daemon keeps its state elsewhere, not in " + path})
		}
	case errors.Is(err, state.ErrCorrupt):
		f := Finding{Level: Fail, Text: "the state file is damaged", Detail: err.Error(),
			Fix: "check the disk, then `ccship service restart`: the file is then set aside, and every transcript is sent again"}
		if x.daemon().client == nil {
			f.Fix = "check the disk, then `ccship service start`: the file is then set aside, and every transcript is sent again"
		}
		found = append(found, f)
	case ended(ctx, err):
		found = append(found, Finding{Level: Note, Text: "the state file is too large to check in time", Detail: path})
	default:
		f := explained(Fail, err)
		f.Fix = "make it readable and writable by this user"
		found = append(found, f)
	}
	return found
}

// looseState finds files of the state that others can read or write.
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

// escapeGlob makes a pattern that matches a path literally.
func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // Windows has no escaping; files that do not match are not reported
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
	text := fmt.Sprintf("%s free for state and outbox", amount.Size(int64(free)))
	f := Finding{Text: text, Detail: fmt.Sprintf("below %s reading stops, and nothing is queued",
		amount.Size(int64(head))), Fix: "free disk space, or lower head_room"}
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
