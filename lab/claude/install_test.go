//go:build unix

package claude_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// versions are those that people run: what npm gives to a new Node, what it gives to an old one, and the last of the
// line before, which writes its files in another way.
var versions = []string{"2.1.328", "2.1.197", "2.0.76"}

// allVersions is those, and the newest that npm knows, if it can be asked.
func allVersions() []string {
	npm, err := exec.LookPath("npm")
	if err != nil || kit.IsQuick() {
		return versions
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, npm, "view", "@anthropic-ai/claude-code", "version").Output()
	newest := strings.TrimSpace(string(out))
	if err != nil || newest == "" || slices.Contains(versions, newest) {
		return versions
	}
	return append([]string{newest}, versions...)
}

// installed is the path of Claude Code's program, fetched if need be; it skips the test where that cannot be.
func installed(t testing.TB, version string) string {
	t.Helper()
	program, err := locate(version)
	if err != nil {
		t.Skipf("no Claude Code %s: %v", version, err)
	}
	if strings.HasSuffix(program, ".js") {
		if _, err := exec.LookPath("node"); err != nil {
			t.Skipf("no Claude Code %s: it is a script, and %v", version, err)
		}
	}
	return program
}

// locate finds an installed version, or installs it from npm.
func locate(version string) (string, error) {
	if dir := kit.Setting("programs", ""); dir != "" {
		if program := programIn(filepath.Join(dir, "claude-"+version)); program != "" {
			return program, nil
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ccship-e2e", "claude-"+version)
	if program := programIn(dir); program != "" {
		return program, nil
	}
	if err := install(dir, version); err != nil {
		return "", err
	}
	if program := programIn(dir); program != "" {
		return program, nil
	}
	return "", fmt.Errorf("npm put no program that is known here into %s", dir)
}

// programIn is the program of an installed package, "" when there is none. New packages bring a native program for
// the platform, older ones a script.
func programIn(dir string) string {
	scope := filepath.Join(dir, "node_modules", "@anthropic-ai")
	packages, err := os.ReadDir(scope)
	if err != nil {
		return ""
	}
	for _, p := range packages {
		native := filepath.Join(scope, p.Name(), "claude")
		if info, err := os.Stat(native); strings.HasPrefix(p.Name(), "claude-code-") && err == nil && info.Mode().IsRegular() {
			return native
		}
	}
	script := filepath.Join(scope, "claude-code", "cli.js")
	if _, err := os.Stat(script); err != nil {
		return ""
	}
	return script
}

// install gets a version from npm. It is put together under another name: an installation that was cut off is never
// taken for a whole one.
func install(dir, version string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "install", "--prefix", partial, "--no-audit", "--no-fund", "--ignore-scripts",
		"--loglevel=error", "@anthropic-ai/claude-code@"+version)
	cmd.Dir, cmd.WaitDelay = partial, 10*time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
		return fmt.Errorf("npm install: %w: %s", err, line)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}
