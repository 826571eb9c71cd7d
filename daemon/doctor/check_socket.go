package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// checkSocket checks the socket that the daemon answers on; without a daemon, the configured one.
func checkSocket(_ context.Context, x *exam) []Finding {
	if len(x.o.Sockets) == 0 {
		return nil
	}
	r := x.daemon()
	path := x.o.Sockets[0]
	if r.client != nil {
		path = r.socket
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.client == nil:
		return nil // checkDaemon reports it
	case codeOf(r.err) == control.CodeSocket:
		return nil // checkDaemon reports it
	case err != nil:
		return []Finding{{Level: Warn, Text: "the control socket cannot be checked: " + err.Error()}}
	case r.client == nil && errors.Is(r.err, control.ErrNotRunning):
		f := Finding{Level: Warn, Text: "a killed daemon left its socket behind", Detail: path,
			Fix: "`rm " + control.ShellWord(path) + "`"}
		return []Finding{f.safely(phaseFile, func(context.Context) error { return control.RemoveStale(path) })}
	}
	var found []Finding
	if !ours(info) {
		found = append(found, Finding{Level: Warn, Text: "the control socket belongs to another user", Detail: path,
			Fix: "choose another path with --socket"})
	} else if !onlyOwners(info.Mode()) {
		found = append(found, loose(path, "the control socket", info, 0o600))
	}
	if folder, err := os.Stat(filepath.Dir(path)); err == nil && ours(folder) && folder.Mode().Perm()&0o022 != 0 &&
		!onlyOwners(folder.Mode()) && folder.Mode()&fs.ModeSticky == 0 {
		found = append(found, loose(filepath.Dir(path), "the folder of the control socket", folder, 0o700))
	}
	if r.client != nil && r.took > slow+x.o.patience {
		found = append(found, Finding{Level: Warn, Text: fmt.Sprintf("the daemon took %s to answer",
			r.took.Round(time.Millisecond)), Detail: "it or this machine is busy",
			Fix: "`ccship status` shows what it is doing"})
	}
	if len(found) == 0 && r.client != nil {
		return fine("answers in " + r.took.Round(100*time.Microsecond).String())
	}
	return found
}

// loose returns the finding of a file that others may read or write.
func loose(path, what string, info fs.FileInfo, mode fs.FileMode) Finding {
	f := Finding{
		Level: Warn, Text: fmt.Sprintf("%s is readable by others (mode %04o)", what, info.Mode().Perm()), Detail: path,
		Fix: fmt.Sprintf("`chmod %o %s`", mode, control.ShellWord(path)),
	}
	if info.Mode().Perm()&0o022 != 0 {
		f.Text = fmt.Sprintf("%s is writable by others (mode %04o)", what, info.Mode().Perm())
	}
	return f.safely(phaseFile, func(context.Context) error { return os.Chmod(path, mode) })
}
