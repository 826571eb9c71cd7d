package sys

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text := kit.Try(os.ReadFile(path)).Must(t)
	return string(text)
}

// only fails unless a folder holds these names and no others.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries := kit.Try(os.ReadDir(dir)).Must(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	kit.Equal(t, "the folder holds", got, names)
}

// A step that fails leaves the old file whole until the new one has its name, and nothing next to it. The content is
// durable before the name is given, and the name at the end.
func TestFaults(t *testing.T) {
	steps := []string{"sync", "close", "name", "sync folder"}
	for i, failing := range append(steps, "none") {
		path := filepath.Join(t.TempDir(), "settings")
		kit.Must(t, os.WriteFile(path, []byte("old"), 0o600))
		f := kit.Try(CreateFile(path)).Must(t)
		kit.Try(f.WriteString("new")).Must(t)
		var taken []string
		broken := errors.New("broken disk")
		f.fault = func(step string) error {
			if taken = append(taken, step); step == failing {
				return broken
			}
			return nil
		}
		kit.Equal(t, failing+" fails", errors.Is(f.Commit(), broken), (failing != "none"))
		want := "old"
		if i > slices.Index(steps, "name") {
			want = "new"
		}
		kit.Equal(t, failing+" fails: the file holds", read(t, path), want)
		kit.Check(t, failing != "none" || slices.Equal(taken, steps), "the steps are %q, want %q", taken, steps)
		only(t, filepath.Dir(path), "settings")
	}
}

func TestCommitNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "export")
	for i, want := range []error{nil, fs.ErrExist} {
		f := kit.Try(CreateFile(path)).Must(t)
		kit.Try(f.WriteString([]string{"first", "second"}[i])).Must(t)
		err := f.CommitNew()
		kit.Check(t, errors.Is(err, want), "%v, want %v", err, want)
		kit.Equal(t, "it holds", read(t, path), "first")
		only(t, filepath.Dir(path), "export")
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	kit.Must(t, os.WriteFile(path, []byte("a longer text than the new one"), 0o644))
	if err := WriteFile(path, []byte("new")); err != nil || read(t, path) != "new" {
		t.Errorf("%v, %q", err, read(t, path))
	}
	info := kit.Try(os.Stat(path)).Must(t)
	kit.Check(t, runtime.GOOS == "windows" || info.Mode().Perm() == 0o600, "mode %v", info.Mode())
	kit.Check(t, WriteFile(filepath.Join(path, "below a file"), nil) != nil, "a file below a file was written")
}

// A link stays a link, and leads to the new content.
func TestWriteThroughLink(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	kit.Must(t, os.WriteFile(elsewhere, []byte("old"), 0o600))
	link := filepath.Join(dir, "settings")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Skip(err)
	}
	if err := WriteFile(link, []byte("new")); err != nil || read(t, elsewhere) != "new" {
		t.Errorf("%v, the file holds %q", err, read(t, elsewhere))
	}
	info := kit.Try(os.Lstat(link)).Must(t)
	kit.Check(t, info.Mode().Type() == fs.ModeSymlink, "the link is %v", info.Mode())
	only(t, dir, "settings")
}

const (
	room = 12 << 20
	most = 200
)

func TestPercentOf(t *testing.T) {
	for _, c := range []struct {
		alive, most uint64
		want        int
	}{
		{0, 100, 100}, {1 << 20, 100, 100}, {room, 100, 100},
		{0, 200, 200}, {room / 2, 200, 200}, {room * 2 / 3, 200, 150}, {room, 200, 100},
		{room + room/2, 100, 66}, {2 * room, 200, 50}, {100 * room, 200, least},
	} {
		got := percentOf(c.alive, room, c.most)
		kit.Check(t, got == c.want, "of %d bytes alive, at most %d %%: %d %%, want %d", c.alive, c.most, got, c.want)
	}
}

// TestBound: with much alive garbage takes a smaller share, and with little the most.
func TestBound(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	BoundHeap(room, most)
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	until := func(what string, ok func(int) bool) {
		for end := time.Now().Add(2 * time.Minute); !ok(percent()); runtime.GC() {
			if time.Now().After(end) {
				t.Fatalf("%s: still %d %%", what, percent())
			}
		}
	}
	alive := make([]byte, 3*room)
	until("much is alive", func(p int) bool { return p >= least && p <= 60 })
	runtime.KeepAlive(alive)
	until("little is alive", func(p int) bool { return p == most })
}

// TestChange: a changed name is kept, the former ones are known, and hosts are numbered.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadIdentity(dir)
	kit.Require(t, err == nil && first.Name != "" && first.Former == nil, "%+v, %v", first, err)
	for _, suffix := range []string{" (2)", " (3)"} {
		was, _ := LoadIdentity(dir)
		kit.Must(t, ChangeIdentity(dir))
		now, err := LoadIdentity(dir)
		kit.Check(t, err == nil && now.Name != was.Name && len(now.Name) == 32 && slices.Equal(now.Former, append([]string{was.Name}, was.Former...)) && now.Host == first.Host+suffix,
			"%+v after %+v, %v", now, was, err)
	}
	kit.Must(t, os.WriteFile(filepath.Join(dir, identityFile), []byte("{"), 0o600))
	_, err = LoadIdentity(dir)
	kit.Check(t, err != nil, "a damaged file passes for a name")
}

// TestDial: the kernel tells both ends who is at the other.
func TestDial(t *testing.T) {
	dir, err := os.MkdirTemp("", "ccs") // the path of a socket is short
	kit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	ln := kit.Try(net.Listen("unix", path)).Must(t)
	defer ln.Close()
	client := kit.Try(DialPeer(t.Context(), net.Dialer{}, path)).Must(t)
	defer client.Close()
	conn := kit.Try(ln.Accept()).Must(t)
	defer conn.Close()
	kit.Gives(t, "the peer", os.Geteuid())(PeerOf(conn.(*net.UnixConn)))
	for uid, want := range map[int]bool{os.Geteuid(): true, 0: true, os.Geteuid() + 4711: false} {
		kit.Check(t, TrustedPeer(uid) == want, "Trusted(%d) = %v", uid, !want)
	}
}

// TestMain is also the other process: with a root in its environment it takes the lock until its input ends.
func TestMain(m *testing.M) {
	root := os.Getenv("SINGLETON_ROOT")
	if root == "" {
		os.Exit(m.Run())
	}
	l, err := AcquireLock([]string{root}, Holder{PID: os.Getpid(), State: "/other/state", Since: time.Now()})
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("locked\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_ = l.Release()
	os.Exit(0)
}

// TestTwoProcesses: the second learns who the first is, also by another path to the root; when the first ends, even by
// a kill, the root is free.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	root, link := filepath.Join(dir, "root"), filepath.Join(dir, "link")
	kit.Must(t, os.Mkdir(root, 0o700))
	if err := os.Symlink(root, link); err != nil {
		link = root
	}
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "SINGLETON_ROOT="+root, "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+dir)
	in := kit.Try(other.StdinPipe()).Must(t)
	defer in.Close()
	out := kit.Try(other.StdoutPipe()).Must(t)
	kit.Must(t, other.Start())
	if text, err := bufio.NewReader(out).ReadString('\n'); err != nil || text != "locked\n" {
		t.Fatalf("the other process: %q, %v", text, err)
	}
	var held *HeldError
	if _, err := AcquireLock([]string{dir, link}, Holder{PID: 1}); !errors.As(err, &held) {
		t.Fatalf("the second: %v", err)
	}
	kit.Check(t, held.Holder.PID == other.Process.Pid && held.Holder.State == "/other/state" && held.Root == link,
		"held: %+v", held)
	h, ok := FindHolder([]string{root})
	kit.Check(t, ok && h.PID == other.Process.Pid, "found %+v, %t", h, ok)
	kit.Must(t, other.Process.Kill())
	_ = other.Wait() // it was killed
	l, err := AcquireLock([]string{dir, link}, Holder{PID: 1})
	kit.Require(t, err == nil, "after its end: %v", err)
	kit.Should(t, l.Release())
	_, ok = FindHolder([]string{root})
	kit.Check(t, !ok, "a released root is held")
}

// TestMissingRoot: a root that does not exist has a lock, too, and it is not that of its parent.
func TestMissingRoot(t *testing.T) {
	dir := t.TempDir()
	l := kit.Try(AcquireLock([]string{filepath.Join(dir, "a", "b")}, Holder{PID: 7})).Must(t)
	defer l.Release()
	h, ok := FindHolder([]string{filepath.Join(dir, "a", "b")})
	kit.Check(t, ok && h.PID == 7, "found %+v, %t", h, ok)
	_, ok = FindHolder([]string{dir})
	kit.Check(t, !ok, "the parent is held")
}

// TestReplacedRoot: a root whose folder was replaced is still held, and the folder that was moved away is not.
func TestReplacedRoot(t *testing.T) {
	dir := t.TempDir()
	root, away := filepath.Join(dir, "root"), filepath.Join(dir, "away")
	kit.Must(t, os.Mkdir(root, 0o700))
	l := kit.Try(AcquireLock([]string{root}, Holder{PID: 7})).Must(t)
	defer l.Release()
	kit.Must(t, os.Rename(root, away))
	h, ok := FindHolder([]string{away})
	kit.Check(t, !ok, "a folder that nobody delivers any more is held by %+v", h)
	kit.Must(t, os.Mkdir(root, 0o700))
	h, ok = FindHolder([]string{root})
	kit.Check(t, ok && h.PID == 7, "found %+v, %t", h, ok)
}
