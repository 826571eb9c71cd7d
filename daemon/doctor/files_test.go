package doctor

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func TestState(t *testing.T) {
	modes(t)
	w := synced(t)
	path := filepath.Join(w.opts.Config.StateDir, "state.db")
	for what, mode := range map[string]os.FileMode{path: 0o600, w.opts.Config.StateDir: 0o700} {
		kit.Must(t, os.Chmod(what, mode|0o044))
		r := w.examine()
		w.wants(r, "state", Warn, "is readable by others", "`chmod ")
		w.fixed(r, "state")
	}
	aside := w.write(strings.TrimPrefix(path, w.home+"/")+".corrupt-20261121T000000Z", "x", 0)
	w.wants(w.examine(), "state", Note, "set aside", "check the disk")
	kit.Must(t, os.Remove(aside))
	w.opts.Config.StateDir = filepath.Join(w.home, "nowhere") // a daemon that keeps its state elsewhere
	w.wants(w.examine(), "state", Note, "elsewhere", "")
}

func TestDamagedState(t *testing.T) {
	w := newWorld(t)
	w.write(".local/state/ccship/state.db", strings.Repeat("no state at all ", 1024), 0)
	w.wants(w.examine(), "state", Fail, "damaged", "`ccship service start`")
	if runtime.GOOS != "windows" && os.Geteuid() != 0 {
		kit.Must(t, os.Chmod(filepath.Join(w.opts.Config.StateDir, "state.db"), 0))
		w.wants(w.examine(), "state", Fail, "permission denied", "readable")
	}
}

func TestDisk(t *testing.T) {
	w := newWorld(t)
	free := int64(1) << 62
	w.opts.Config.HeadRoom = free
	w.wants(w.examine(), "disk", Fail, "nearly full", "head_room")
	w.opts.Config.HeadRoom = 0
	w.opts.Config.StateDir = filepath.Join(w.home, "not", "made", "yet")
	w.silent(w.examine(), "disk")
}

func TestSocket(t *testing.T) {
	modes(t)
	w := newWorld(t)
	path := w.opts.Config.Socket
	w.told.st.Running, w.told.st.PID = false, 0
	t.Run("stale", func(t *testing.T) {
		w.t = t
		kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		ln := kit.Try(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})).Must(t)
		ln.SetUnlinkOnClose(false) // as kill -9 leaves it
		_ = ln.Close()
		r := w.examine()
		w.wants(r, "socket", Warn, "a killed daemon left its socket behind", "`rm "+path+"`")
		w.told.do = func(string) error { return &control.Error{Message: "not now"} }
		fixes := ApplyFixes(context.Background(), r)
		kit.Check(t, len(fixes) == 2 && fixes[0].ID == "socket" && fixes[0].Done, "%+v", fixes)
		kit.Check(t, !exists(path), "it is still there")
	})
	t.Run("a file in its place", func(t *testing.T) {
		w.t = t
		w.write(strings.TrimPrefix(path, w.home+"/"), "mine", 0)
		defer os.Remove(path)
		r := w.examine()
		kit.Check(t, !w.wants(r, "socket", Fail, "is not a socket", "--socket").Safe, "what is not ours is not touched")
	})
	t.Run("open to others", func(t *testing.T) {
		w.t = t
		w.start()
		kit.Must(t, os.Chmod(path, 0o666))
		r := w.examine()
		w.wants(r, "socket", Warn, "is writable by others (mode 0666)", "`chmod 600 "+path+"`")
		w.fixed(r, "socket")
		kit.Must(t, os.Chmod(filepath.Dir(path), 0o777))
		r = w.examine()
		w.wants(r, "socket", Warn, "the folder of the control socket", "`chmod 700 ")
		w.fixed(r, "socket")
	})
}
