//go:build unix

package e2e

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCaptureSharedSpool: what others put into a folder that all may write to is neither followed nor waited for nor
// believed. The command runs all the same, and once it is gone the next capture delivers.
func TestCaptureSharedSpool(t *testing.T) {
	t.Parallel()
	s := newScribe(exactWorld(t), 90, 9)
	mine, fresh := filepath.Join(s.dir, "profile"), filepath.Join(s.dir, "fresh")
	must(t, os.WriteFile(mine, []byte("mine\n"), 0o600))
	theirs := filepath.Join(s.dir, "theirs")
	must(t, os.WriteFile(theirs, []byte(`{"name":"theirs"}`), 0o600))
	plants := map[string]func(at string) error{
		"capture.log":   func(at string) error { return os.Symlink(mine, at) },
		"state.db.lock": func(at string) error { return os.Symlink(fresh, at) },
		"state.db":      func(at string) error { return syscall.Mkfifo(at, 0o666) },
		"machine.json":  func(at string) error { return os.Rename(theirs, at) },
	}
	if os.Geteuid() != 0 || os.Chown(theirs, 65534, 65534) != nil {
		delete(plants, "machine.json") // only root can make a file of another user
	}
	var spool string
	for name, plant := range plants {
		spool = filepath.Join(s.dir, "spool of "+name)
		must(t, os.Mkdir(spool, 0o700))
		must(t, os.Chmod(spool, 0o777))
		must(t, plant(filepath.Join(spool, name)))
		out := s.ccship(s.capture(`cat "$1" >"$2"; exit 5`, "--spool", spool)...)
		if out.code != 5 || !strings.Contains(out.stderr, "not a file of this user") {
			t.Errorf("%s: exit %d, %q", name, out.code, out.stderr)
		}
		must(t, os.Remove(filepath.Join(spool, name)))
	}
	must(t, os.Symlink(mine, filepath.Join(spool, "proven_servers")))
	s.quietly(0, "capture", "--wait", patiently, "--spool", spool, "true")
	s.same(s.session, s.path)
	if string(s.read(mine)) != "mine\n" {
		t.Errorf("a file behind a link has %q", s.read(mine))
	}
	if _, err := os.Lstat(fresh); err == nil {
		t.Error("a file was made behind a link")
	}
}

// TestCaptureKeepsSecrets: as with a service, secrets are masked before they are in the spool, excluded projects stay
// here, and nothing in the spool can be used by others.
func TestCaptureKeepsSecrets(t *testing.T) {
	w := aloneWorld(t)
	w.env = append(w.env, "CCSHIP_REDACT=on", "CCSHIP_LOG_LEVEL=debug")
	s, secret := newScribe(w, 91, 4), &secrets{t, rand.New(rand.NewPCG(8, 8)), map[string]string{}}
	_, beside, _ := secretSession(w, secret)
	excluded := filepath.Join(w.dir, "excluded")
	must(t, os.MkdirAll(filepath.Join(excluded, ".codetracker"), 0o700))
	must(t, os.WriteFile(filepath.Join(excluded, ".codetracker", "config.json"), []byte(`{"conversation_tracking":{"enabled":false}}`), 0o600))
	private := newConversation(92, excluded)
	w.add(w.path("-excluded", private.session+".jsonl"), private.even(3, 500))
	spool := filepath.Join(s.dir, "spool")
	s.quietly(0, s.capture(`cat "$1" >>"$2"`, "--spool", spool)...)
	s.same(s.session, s.path)
	id := strings.TrimSuffix(filepath.Base(beside), ".jsonl")
	raw := w.exact.raw(id, "")
	w.sameShape(raw, w.read(beside))
	must(t, filepath.WalkDir(spool, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		if err == nil && info.Mode().IsRegular() {
			raw = append(raw, w.read(path)...)
		}
		return err
	}))
	if found := secret.in(raw); len(found)*50 > len(secret.needles) {
		t.Errorf("%d of %d secrets are on the server or in the spool: %q", len(found), len(secret.needles), found)
	}
	if code, _ := w.exact.get("/api/sessions/" + private.session); code != 404 || bytes.Contains(raw, []byte(private.session)) {
		t.Errorf("an excluded session: %d", code)
	}
}
