//go:build unix

package viewer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// site is a running ccship-server with a database of its own and a key of its owner.
type site struct {
	proc *kit.Process
	dir  string
	url  string // with the base path, without a slash at its end
	key  string
	args []string // of serve
}

// openSite starts a server in dir. args are further options of serve.
func openSite(dir string, args ...string) (*site, error) {
	s := &site{dir: dir, args: args}
	var err error
	if s.key, err = s.admin("key", "create", "--name", "laptop"); err != nil {
		return nil, err
	}
	server, err := kit.Build("ccship-server")
	if err != nil {
		return nil, err
	}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--store", s.store()}, args...)
	if s.proc, err = launch(s.env(), server, args...); err != nil {
		return nil, err
	}
	if s.url, err = s.proc.Listening(); err != nil {
		return nil, errors.Join(err, s.proc.Stop())
	}
	return s, nil
}

// newSite is a server for one test.
func newSite(t testing.TB, args ...string) *site {
	t.Helper()
	dir := kit.Try(os.MkdirTemp(kit.Workshop(), "s")).Must(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := kit.Try(openSite(dir, args...)).Must(t)
	s.proc.StopAfter(t)
	return s
}

func (s *site) store() string { return "sqlite:" + filepath.Join(s.dir, "server.db") }

func (s *site) env() []string {
	return []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "NO_COLOR=1"}
}

// admin runs a verb of ccship-server on the site's store.
func (s *site) admin(args ...string) (string, error) {
	server, err := kit.Build("ccship-server")
	if err != nil {
		return "", err
	}
	return output(s.env(), server, append(args, "--store", s.store())...)
}

// mustAdmin is admin where nothing may go wrong.
func (s *site) mustAdmin(t testing.TB, args ...string) string {
	t.Helper()
	return kit.Try(s.admin(args...)).Must(t)
}

// ask sends a request with a key. A compressed body says so in encoding.
func (s *site) ask(method, path, key, encoding string, body []byte) (int, []byte, error) {
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-API-Key", key)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res.StatusCode, got, err
}

// settled waits until everything stored is derived.
func (s *site) settled(t testing.TB) {
	t.Helper()
	var last []byte
	if !kit.Within(patience, func() bool {
		_, body, err := s.ask("GET", "/metrics", s.key, "", nil)
		last = body
		return err == nil && bytes.Contains(body, []byte("\nccship_server_derive_lag_streams 0\n"))
	}) {
		t.Fatalf("not everything is derived within %s:\n%s", patience, last)
	}
}

// peak is the most resident memory the server has had, in bytes; 0 where the system doesn't tell.
func (s *site) peak(t testing.TB) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.proc.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	if !found {
		return 0
	}
	var kib int64
	kit.Try(fmt.Sscan(rest, &kib)).Must(t)
	return kib << 10
}
