package systemd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

const (
	suite    = "bookworm"
	packages = "systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd"

	userName = "kim"
	userID   = 1000
)

// base is the plain system that boxes are copies of; it is built once, and again when what goes into it changes.
var base = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "ccship-e2e", suite+"-"+strings.ReplaceAll(packages, ",", "-"))
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o700); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(filepath.Dir(root), "building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := bootstrap(filepath.Join(work, "root")); err != nil {
		return "", err
	}
	return root, os.Rename(filepath.Join(work, "root"), root)
})

// bootstrap installs Debian into a folder, from the mirror the host's apt uses.
func bootstrap(root string) error {
	targets, err := command("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return fmt.Errorf("ask apt for its sources: %w", err)
	}
	mirror, ok := mirrorIn(string(targets))
	if !ok {
		return fmt.Errorf("apt has no source for Debian %s", suite)
	}
	cmd := command("debootstrap", "--variant=minbase", "--include="+packages, suite, root, mirror)
	cmd.Env = append(os.Environ(), aptProxy()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("debootstrap: %w\n%s", err, lastLines(string(out), 10))
	}
	for _, dir := range []string{"var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"} { // every box copies what is there
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			return err
		}
	}
	if out, err := command("chroot", root, "useradd", "-m", "-s", "/bin/bash", "-u", fmt.Sprint(userID), userName).CombinedOutput(); err != nil {
		return fmt.Errorf("add user: %w\n%s", err, out)
	}
	for _, file := range []struct{ name, content string }{
		{"etc/hostname", "box\n"},
		{"etc/machine-id", ""}, // filled at first boot
		{"var/lib/systemd/linger/" + userName, ""},
		{"var/log/journal/.keep", ""}, // a persistent journal: users read their own services' lines there
	} {
		path := filepath.Join(root, file.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// mirrorIn is the mirror of the suite's main component among lines of "release component address".
func mirrorIn(targets string) (string, bool) {
	for line := range strings.Lines(targets) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == suite && words[1] == "main" {
			return words[2], true
		}
	}
	return "", false
}

// aptProxy is the environment for the proxy that apt goes through, if there is one.
func aptProxy() []string {
	out, err := command("apt-config", "dump", "--format", "%v", "Acquire::http::Proxy").Output()
	if err != nil || len(bytes.TrimSpace(out)) == 0 {
		return nil
	}
	return []string{"http_proxy=" + strings.TrimSpace(string(out))}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func command(name string, args ...string) *exec.Cmd { return exec.Command(name, args...) }
