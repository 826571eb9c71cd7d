//go:build unix

package claude_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// home is one person's machine: Claude Code with a HOME of its own, and a folder to work in.
type home struct {
	t       testing.TB
	dir     string
	program string // Claude Code
	api     string // base URL of the stub
	version string // of Claude Code
	folder  string // to work in
	flags   []string
	env     []string // besides the usual one
}

const apiKey = "sk-ant-e2e-0000000000000000000000000"

// newHome makes a home in which Claude Code has been used before: nothing is left to ask the person.
func newHome(t testing.TB, program string, s *stub) *home {
	t.Helper()
	dir := kit.Try(os.MkdirTemp(kit.Workshop(), "h")).Must(t)
	h := &home{t: t, dir: dir, program: program, api: s.srv.URL, folder: filepath.Join(dir, "work")}
	for _, d := range []string{h.claudeDir(), h.cwd(), filepath.Join(dir, "tmp")} {
		must(t, os.MkdirAll(d, 0o700))
	}
	h.preset(filepath.Join(dir, ".claude.json"), map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "99.0.0", "theme": "dark", "autoUpdates": false,
		"bypassPermissionsModeAccepted": true, "officialMarketplaceAutoInstallAttempted": true,
		"customApiKeyResponses": map[string]any{"approved": []string{apiKey[len(apiKey)-20:]}, "rejected": []string{}},
		"projects":              map[string]any{h.cwd(): map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	})
	h.preset(filepath.Join(h.claudeDir(), "settings.json"), map[string]any{
		"skipDangerousModePermissionPrompt": true, "spinnerTipsEnabled": false,
	})
	return h
}

func (h *home) claudeDir() string { return filepath.Join(h.dir, ".claude") }
func (h *home) projects() string  { return filepath.Join(h.claudeDir(), "projects") }
func (h *home) cwd() string       { return h.folder }

func (h *home) preset(path string, content any) {
	data := kit.Try(json.Marshal(content)).Must(h.t)
	must(h.t, os.WriteFile(path, data, 0o600))
}

// claude is Claude Code with args, ready to start, without a terminal. Its proxy is a closed port: whatever is not
// for this machine fails at once.
func (h *home) claude(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.program, slices.Concat([]string{"-p", "--permission-mode", "bypassPermissions"}, h.flags, args)...)
	cmd.Dir = h.cwd()
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "LANG=C.UTF-8", "TERM=dumb", "SHELL=/bin/bash", "PWD=" + h.cwd(),
		"ANTHROPIC_BASE_URL=" + h.api, "ANTHROPIC_API_KEY=" + apiKey, "CLAUDE_CODE_TMPDIR=" + filepath.Join(h.dir, "tmp"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_BUG_COMMAND=1",
		"IS_SANDBOX=1",                      // root may let every tool run
		"CLAUDE_CODE_TRANSCRIPT_LOCAL_GC=1", // newer ones replace a large file at its compaction
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost",
	}
	cmd.Env = append(cmd.Env, h.env...)
	ownGroup(cmd)
	return cmd
}

// ownGroup has a command and what it starts end together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
}

// outcome is what Claude Code says of a run.
type outcome struct {
	Result    string `json:"result"`
	SessionID string `json:"session_id"`
	IsError   bool   `json:"is_error"`
}

// prompt runs Claude Code to its end, with the prompt on its stdin.
func (h *home) prompt(prompt string, args ...string) outcome {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := h.claude(ctx, append([]string{"--output-format", "json"}, args...)...)
	cmd.Stdin = strings.NewReader(prompt)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var o outcome
	if err != nil || json.Unmarshal(out, &o) != nil || o.IsError {
		h.t.Fatalf("claude %v: %v\n%.2000s\n%.2000s", args, err, out, stderr.String())
	}
	return o
}

// expect demands an answer.
func (h *home) expect(o outcome, want string) outcome {
	h.t.Helper()
	if !strings.Contains(o.Result, want) || o.SessionID == "" {
		h.t.Fatalf("Claude Code answered %.300q in session %q, want %q", o.Result, o.SessionID, want)
	}
	return o
}

// dialogue is a Claude Code that stays: prompts go in and answers come out as lines of JSON.
type dialogue struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *json.Decoder
}

// converse starts a Claude Code that takes prompt after prompt.
func (h *home) converse(ctx context.Context, args ...string) *dialogue {
	h.t.Helper()
	cmd := h.claude(ctx, append([]string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose"}, args...)...)
	in := kit.Try(cmd.StdinPipe()).Must(h.t)
	out := kit.Try(cmd.StdoutPipe()).Must(h.t)
	must(h.t, cmd.Start())
	return &dialogue{h.t, cmd, in, json.NewDecoder(out)}
}

// prompt says something, a text or content blocks, and waits for the end of the turn.
func (c *dialogue) prompt(content any) outcome {
	c.t.Helper()
	must(c.t, json.NewEncoder(c.in).Encode(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": content}}))
	for {
		var line struct {
			Type string `json:"type"`
			outcome
		}
		err := c.lines.Decode(&line)
		kit.Require(c.t, err == nil, "read Claude Code's answer: %v", err)
		if line.Type == "result" {
			return line.outcome
		}
	}
}

// end closes the conversation and waits for Claude Code to be gone.
func (c *dialogue) end() {
	c.t.Helper()
	must(c.t, c.in.Close())
	for c.lines.Decode(new(json.RawMessage)) == nil { // to the end of its output, which Wait asks for
	}
	must(c.t, c.cmd.Wait())
}
