//go:build linux

package field_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/bench/gauge"
	"github.com/ccship/ccship/e2e/bench/league"
	"github.com/ccship/ccship/e2e/kit"
)

// viewed is the chain of agentsview: it reads the folder below its home, and is ready when it listens.
func (w *world) viewed(t *testing.T, s *league.Scenario, c *contestant) {
	l := w.history(t, w.chain)
	p := w.newPlace(t, c, nil)
	p.projects = filepath.Join(p.dir, ".claude", "projects")
	linked(t, l.dir, p.projects)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	address := free.Addr().String()
	kit.Must(t, free.Close())
	_, port, err := net.SplitHostPort(address)
	kit.Must(t, err)
	cmd := exec.CommandContext(context.Background(), c.program, "serve", "--no-browser", "--no-update-check", "--port", port)
	cmd.Dir = p.dir
	cmd.Env = []string{"HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TELEMETRY_ENABLED=0", "AGENTSVIEW_TELEMETRY_ENABLED=0"}
	began := time.Now()
	p.proc = kit.Launch(t, cmd)
	kit.Eventually(t, "everything is searchable", w.limit, func() bool { return strings.Contains(p.proc.Log.String(), "listening at") })
	took := time.Since(began)
	use, err := gauge.Tree(p.proc.Cmd.Process.Pid)
	kit.Must(t, err)
	w.carried(s, c.name, took, use.CPU, l)
	atRest(t, s, c.name, p.proc)
	p.searches(s, c.name, filepath.Join(p.projects, "-work-chain", session(1)+".jsonl"), w.appends, func(word string) bool {
		answer, err := http.Get("http://" + address + "/api/v1/search?" + url.Values{"q": {word}}.Encode())
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		var page struct {
			Results []struct {
				Session string `json:"session_id"`
			}
		}
		return json.NewDecoder(answer.Body).Decode(&page) == nil && len(page.Results) > 0
	})
	p.kill()
	s.Add(c.name, "database ÷ raw", "", float64(weight(filepath.Join(p.dir, ".agentsview", "sessions.db")))/float64(l.bytes))
}

// linked makes the files of a folder appear in another one, at no cost.
func linked(t *testing.T, from, to string) {
	t.Helper()
	kit.Must(t, filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		kit.Must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		return os.Link(path, at)
	}))
}
