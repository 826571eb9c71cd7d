//go:build unix

package claude_test

import (
	"context"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRealClaudeCapture runs `ccship capture claude -p` on a machine without a service, in each version: when it returns,
// the server has every line, agents included, and nothing is said.
func TestRealClaudeCapture(t *testing.T) {
	kit.OnlyInLab(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			w := newWorld(newHome(t, installed(t, version), newStub(t)))
			for _, prompt := range []string{"hello", `@Bash {"command":"seq 3","description":"Count"}`,
				`@Task {"description":"A look","subagent_type":"general-purpose","prompt":"look"}`} {
				w.captured(prompt)
			}
			found := transcripts(t, w.projects())
			kit.Check(t, len(found) >= 3, "%d transcripts", len(found))
			for name, path := range found {
				if code, body := w.get("/api/sessions/" + url.PathEscape(name) + "/raw"); string(body) != string(read(t, path)) {
					t.Errorf("%s: %d, %d bytes of %d", name, code, len(body), len(read(t, path)))
				}
			}
			w.start()
			w.verify()
		})
	}
}

// captured runs one prompt under capture.
func (w *world) captured(prompt string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	claude := w.claude(ctx)
	cmd := exec.CommandContext(ctx, w.bin.ccship, append([]string{"capture", "--"}, claude.Args...)...)
	cmd.Dir, cmd.Env = claude.Dir, append(claude.Env, "CCSHIP_SERVER_URL="+w.server.String(), "CCSHIP_API_KEY_FILE="+w.keyFile())
	cmd.Stdin = strings.NewReader(prompt)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || stderr.Len() > 0 || len(out) == 0 {
		w.t.Errorf("capture claude -p: %v, stdout %.300q, stderr %.300q", err, out, stderr.String())
	}
}
