package systemd

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/ccship/ccship/e2e/kit"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// result is what a command in the box printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
}

// clean is an environment into which nothing of the host's leaks.
func clean(home, user string) []string {
	return []string{"/usr/bin/env", "-i", "-C", home, "HOME=" + home, "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/bash",
		"LANG=C.UTF-8", "TERM=dumb", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// rootDo runs a command as root.
func (b *box) rootDo(args ...string) result {
	b.t.Helper()
	return b.inside("", append(clean("/root", "root"), args...))
}

// userDo runs a command as the user, with the user's bus.
func (b *box) userDo(args ...string) result {
	b.t.Helper()
	return b.inside("", asUser(args...))
}

func asUser(args ...string) []string {
	runtime := fmt.Sprintf("/run/user/%d", userID)
	prefix := append([]string{"/usr/sbin/runuser", "-u", userName, "--"}, clean("/home/"+userName, userName)...)
	prefix = append(prefix, "XDG_RUNTIME_DIR="+runtime, "DBUS_SESSION_BUS_ADDRESS=unix:path="+runtime+"/bus")
	return append(prefix, args...)
}

// inside runs a command in the namespaces of the box's process 1.
func (b *box) inside(stdin string, args []string) result {
	b.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"--target", strconv.Itoa(b.leader), "--all", "--"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	_, exited := errors.AsType[*exec.ExitError](err)
	kit.Require(b.t, err == nil || exited, "run %q: %v", args, err)
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// ok ends the test unless the command succeeded, and returns what it printed.
func (b *box) ok(r result) string {
	b.t.Helper()
	kit.Require(b.t, r.code == 0, "%v", r)
	return r.stdout
}

// put writes a file, owned by the user when it lies in the user's home. It works while the box is down as well, except
// below /tmp and /run, which are new at every boot.
func (b *box) put(name, content string, mode os.FileMode) {
	b.t.Helper()
	path := filepath.Join(b.root, name)
	home := "/home/" + userName + "/"
	for dir := filepath.Dir(name); strings.HasPrefix(dir+"/", home); dir = filepath.Dir(dir) {
		if dir+"/" != home {
			defer func() { must(b.t, os.Chown(filepath.Join(b.root, dir), userID, userID)) }()
		}
	}
	must(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(b.t, os.WriteFile(path, []byte(content), mode))
	if strings.HasPrefix(name, home) {
		must(b.t, os.Chown(path, userID, userID))
	}
}

// copyIn copies a file of the host.
func (b *box) copyIn(from, name string) {
	b.t.Helper()
	content := kit.Try(os.ReadFile(from)).Must(b.t)
	b.put(name, string(content), 0o644)
}

// exists says whether a path is there; links are not followed.
func (b *box) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(b.root, name))
	return err == nil
}

// leaderOf is process 1 of the machine that a systemd-nspawn runs, 0 while there is none. On the way there nspawn's
// process is a shell, and has short-lived children.
func leaderOf(nspawn int) int {
	name := func(pid string) string {
		text, _ := os.ReadFile("/proc/" + pid + "/comm") // "" when it is gone
		return strings.TrimSpace(string(text))
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", nspawn, nspawn))
	if err != nil || name(strconv.Itoa(nspawn)) != "systemd-nspawn" {
		return 0
	}
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil && name(child) == "systemd" {
			return pid
		}
	}
	return 0
}
