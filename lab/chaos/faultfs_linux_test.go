package chaos

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// fsEnv makes the test binary a file system: FOLDER:MOUNT. It is a process of its own, because a program that uses a
// file system which it serves itself can wait for itself.
const fsEnv = "CCSHIP_CHAOS_FS"

// spoil says which calls go wrong, and how.
type spoil struct {
	Op     string // open, create, read, write, fsync, rename, unlink, list, truncate; several with |
	File   string // part of the name; "": any
	After  int    // so many calls go well first
	Times  int    // so many go wrong then; 0: all
	One    int    // one in so many goes wrong; 0: each
	Do     string // error, short, short then error, kill, torn then kill, wait
	Errno  int
	PID    int    // whom kill kills
	Record string // file that every write and fsync is recorded in
}

// spoiled is what came of it.
type spoiled struct {
	Hits  int
	Calls map[string]int
}

// spoiler decides about calls.
type spoiler struct {
	mu    sync.Mutex
	how   spoil
	seen  int // calls that How names
	hits  int
	calls map[string]int
	rng   *rand.Rand
	log   *os.File
}

// serveFaults serves the file system until its input ends, and changes the faults as each line of input says.
func serveFaults() int {
	from, to, _ := strings.Cut(os.Getenv(fsEnv), ":")
	s := &spoiler{calls: map[string]int{}, rng: rand.New(rand.NewPCG(1, 2))}
	var st syscall.Stat_t
	if err := syscall.Stat(from, &st); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	root := &fs.LoopbackRoot{Path: from, Dev: st.Dev}
	top := &faultNode{LoopbackNode: fs.LoopbackNode{RootData: root}, s: s}
	root.RootNode = top
	at := time.Duration(0) // nothing is remembered by the kernel: writers go past the mount
	mount, err := fs.Mount(to, top, &fs.Options{EntryTimeout: &at, AttrTimeout: &at, NegativeTimeout: &at,
		MountOptions: fuse.MountOptions{DirectMountStrict: true, AllowOther: true, FsName: "chaos", MaxWrite: 1 << 20}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("mounted")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		_ = json.NewEncoder(os.Stdout).Encode(s.set(in.Bytes()))
	}
	_ = syscall.Unmount(to, syscall.MNT_DETACH)
	_ = mount.Unmount()
	return 0
}

// set changes the faults; an empty line only asks.
func (s *spoiler) set(line []byte) spoiled {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := spoiled{s.hits, s.calls}
	if len(line) == 0 {
		return was
	}
	s.how, s.seen, s.hits, s.calls = spoil{}, 0, 0, map[string]int{}
	_ = json.Unmarshal(line, &s.how) // our own test wrote it
	if s.log != nil {
		_ = s.log.Close()
		s.log = nil
	}
	if s.how.Record != "" {
		s.log, _ = os.Create(s.how.Record) // none: the test sees an empty record
	}
	return was
}

// at decides about a call: it answers how it goes wrong, "" for well.
func (s *spoiler) at(op, name string) (do string, errno syscall.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[op]++
	if s.how.Do == "" || !strings.Contains("|"+s.how.Op+"|", "|"+op+"|") || !strings.Contains(name, s.how.File) {
		return "", 0
	}
	s.seen++
	if s.seen <= s.how.After || s.how.Times > 0 && s.hits >= s.how.Times || s.how.One > 0 && s.rng.IntN(s.how.One) > 0 {
		return "", 0
	}
	s.hits++
	return s.how.Do, syscall.Errno(s.how.Errno)
}

// plainly is at for calls that cannot be done by halves.
func (s *spoiler) plainly(op, name string) syscall.Errno {
	do, errno := s.at(op, name)
	switch do {
	case "":
		return 0
	case "kill", "torn then kill":
		s.kill()
		return syscall.EIO
	case "wait":
		time.Sleep(time.Second)
		return 0
	}
	return errno
}

func (s *spoiler) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = syscall.Kill(s.how.PID, syscall.SIGKILL)
}

// What a record is of.
const (
	recordWrite = iota
	recordSync
	recordSize
)

// record notes a write, an fsync, or a new size.
func (s *spoiler) record(kind uint64, name string, at int64, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil || !strings.HasSuffix(name, s.how.File) {
		return
	}
	head := binary.LittleEndian.AppendUint64(nil, kind)
	head = binary.LittleEndian.AppendUint64(head, uint64(at))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(data)))
	_, _ = s.log.Write(append(head, data...)) // a record cut short is found when it is read
}

// faultNode is a file or folder below the mount.
type faultNode struct {
	fs.LoopbackNode
	s *spoiler
}

// WrapChild makes what is below a faultNode one, too.
func (n *faultNode) WrapChild(context.Context, fs.InodeEmbedder) fs.InodeEmbedder {
	return &faultNode{LoopbackNode: fs.LoopbackNode{RootData: n.RootData}, s: n.s}
}

func (n *faultNode) name() string { return n.Path(nil) }

func (n *faultNode) wrap(f fs.FileHandle, errno syscall.Errno) (fs.FileHandle, uint32, syscall.Errno) {
	if lf, ok := f.(*fs.LoopbackFile); ok && errno == 0 {
		return &faultFile{fileRest: lf, f: lf, n: n}, 0, 0
	}
	return nil, 0, errno
}

// Open implements fs.NodeOpener, as the others do theirs.
func (n *faultNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.s.plainly("open", n.name()); errno != 0 {
		return nil, 0, errno
	}
	f, _, errno := n.LoopbackNode.Open(ctx, flags)
	return n.wrap(f, errno)
}

func (n *faultNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.s.plainly("create", name); errno != 0 {
		return nil, nil, 0, errno
	}
	inode, f, _, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	child, ok := inode.Operations().(*faultNode)
	if !ok {
		return nil, nil, 0, syscall.EIO
	}
	g, _, errno := child.wrap(f, 0)
	return inode, g, 0, errno
}

func (n *faultNode) Rename(ctx context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if errno := n.s.plainly("rename", name); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Rename(ctx, name, to, newName, flags)
}

func (n *faultNode) Unlink(ctx context.Context, name string) syscall.Errno {
	if errno := n.s.plainly("unlink", name); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Unlink(ctx, name)
}

func (n *faultNode) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.s.plainly("list", n.name()); errno != 0 {
		return nil, 0, errno
	}
	return n.LoopbackNode.OpendirHandle(ctx, flags)
}

func (n *faultNode) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, sized := in.GetSize(); sized {
		n.s.record(recordSize, n.name(), int64(size), nil)
		if errno := n.s.plainly("truncate", n.name()); errno != 0 {
			return errno
		}
	}
	return n.LoopbackNode.Setattr(ctx, f, in, out)
}

// fileRest is what goes well always. It hides that the kernel could go past the file.
type fileRest interface {
	fs.FileFlusher
	fs.FileReleaser
	fs.FileGetattrer
	fs.FileSetattrer
	fs.FileAllocater
}

// faultFile is an open file.
type faultFile struct {
	fileRest
	f *fs.LoopbackFile
	n *faultNode
}

func (f *faultFile) Read(ctx context.Context, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if errno := f.n.s.plainly("read", f.n.name()); errno != 0 {
		return nil, errno
	}
	return f.f.Read(ctx, buf, off)
}

func (f *faultFile) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	do, errno := f.n.s.at("write", f.n.name())
	switch half := data[:len(data)/2]; do {
	case "error":
		return 0, errno
	case "short":
		return f.f.Write(ctx, data[:max(1, len(half))], off)
	case "short then error":
		_, _ = f.f.Write(ctx, half, off)
		return 0, errno
	case "torn then kill":
		_, _ = f.f.Write(ctx, half, off)
		f.n.s.kill()
		return 0, syscall.EIO
	case "kill":
		f.n.s.kill()
		return 0, syscall.EIO
	}
	f.n.s.record(recordWrite, f.n.name(), off, data)
	return f.f.Write(ctx, data, off)
}

func (f *faultFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if errno := f.n.s.plainly("fsync", f.n.name()); errno != 0 {
		return errno
	}
	f.n.s.record(recordSync, f.n.name(), 0, nil)
	return f.f.Fsync(ctx, flags)
}
