//go:build unix

package document

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSpecialFiles: pipes, sockets, devices and files without permission are said to be what they are, at once.
func TestSpecialFiles(t *testing.T) {
	p := newPlace(t)
	fifo := filepath.Join(p.dir, "fifo")
	kit.Must(t, syscall.Mkfifo(fifo, 0o600))
	t.Chdir(p.dir) // a short name for the socket
	ln := kit.Try(net.Listen("unix", "socket")).Must(t)
	defer ln.Close()
	f := p.open()
	for name, says := range map[string]string{"fifo": "pipe", "socket": "socket"} {
		_, err := f.Find("", name)
		refused(t, name, err, says)
		_, err = f.Read(name, 1000, 100)
		refused(t, name, err, says)
	}
	devices := kit.Try(filepath.EvalSymlinks("/dev")).Must(t)
	p.dir = devices
	_, err := p.open().Find("", "null")
	refused(t, "device", err, "device")
	if os.Geteuid() == 0 {
		return // may read everything
	}
	p = newPlace(t)
	path := p.write("locked.md", "x")
	kit.Must(t, os.Chmod(path, 0))
	_, err = p.open().Find("", "locked.md")
	refused(t, "unreadable", err, "permission")
}

// TestSwapped: links, pipes and folders swapped in at full speed never block, and nothing from outside is read.
func TestSwapped(t *testing.T) {
	p := newPlace(t)
	f := p.open()
	doc := filepath.Join(p.dir, "docs", "spec.md")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			next := doc + ".next"
			os.RemoveAll(next)
			switch n % 4 {
			case 0:
				os.Symlink("../../secret", next)
			case 1:
				syscall.Mkfifo(next, 0o600)
			case 2:
				os.WriteFile(next, []byte("# Spec\n"), 0o600)
			case 3:
				os.Symlink(p.outside, next)
			}
			os.Rename(next, doc)
		}
	})
	read := 0
	for tries, end := 0, time.Now().Add(2*time.Minute); (read == 0 || tries < 3000) && time.Now().Before(end); tries++ {
		c, err := f.Read("docs/spec.md", 1000, 100)
		if err == nil && len(c.Bytes) > 0 {
			read++
			if string(c.Bytes) != "# Spec\n" {
				t.Errorf("read %q", c.Bytes)
				break
			}
		}
	}
	close(stop)
	swapping.Wait()
	kit.Check(t, read != 0, "the file itself was never read")
}
