package document

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/projection"
)

// TestCheck checks a document while an editor, a formatter and a clock do what they do between two checks.
func TestCheck(t *testing.T) {
	h := newHarness(t)
	path := h.saveLinked("a.md", "one")
	version := func(what string, p trackedDocument, want int64, rows int64) {
		t.Helper()
		if p.Version != want || h.rows() != rows {
			t.Errorf("%s: version %d and %d rows, want %d and %d", what, p.Version, h.rows(), want, rows)
		}
	}
	version("as it is", h.check("a.md"), 1, 1)
	saveFile(t, h.cwd, "a.md", "two")
	version("it may still be written", h.check("a.md"), 1, 1)
	saveFile(t, h.cwd, "a.md", "three")
	version("it is still written", h.check("a.md"), 1, 1)
	version("it rests", h.check("a.md"), 2, 2)
	kit.Must(t, os.Remove(path))
	kit.Check(t, !h.check("a.md").Deleted, "a file that is missing at one check is deleted")
	saveFile(t, h.cwd, "a.md", "three")
	h.check("a.md")
	version("another file with the same content", h.check("a.md"), 2, 2)
	kit.Must(t, os.Remove(path))
	h.check("a.md")
	p := h.check("a.md")
	kit.Check(t, p.Deleted && p.SHA256 == "" && p.Size == 0, "deleted: %+v", p)
	version("deleted once", h.check("a.md"), 3, 3)
	saveFile(t, h.cwd, "a.md", "three")
	h.check("a.md")
	version("there again, the same", h.check("a.md"), 4, 4)
	saveFile(t, h.cwd, "a.md", "by Claude")
	p = h.check("a.md", edit{path, 7})
	kit.Check(t, p.By == byClaude && p.Version == 5, "an edit of Claude's: %+v", p)
	version("nothing more", h.check("a.md", edit{path, 7}), 5, 5)
}

// TestCheckUnderOneStamp finds a change that leaves the directory entry as it was, as a clock with long ticks does.
func TestCheckUnderOneStamp(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.md", "one")
	p := h.check("a.md")
	kit.Require(t, p.unproven, "a file written just now is not doubted")
	path := saveFile(t, h.cwd, "a.md", "two")
	old := time.Now().Add(-time.Hour)
	kit.Must(t, os.Chtimes(path, old, old))
	h.check("a.md")
	p = h.check("a.md")
	kit.Require(t, p.Version == 2, "version %d", p.Version)
	p.SHA256 = "what was there within the same tick"
	p.unproven = true
	h.put(p, false)
	h.until("the clock has ticked", func() bool { return h.check("a.md").Version == 3 })
	p = h.check("a.md")
	kit.Check(t, !p.unproven && p.Version == 3, "it is doubted for ever: %+v", p)
	p.SHA256 = "what cannot be known any more"
	h.put(p, false)
	p = h.check("a.md")
	kit.Check(t, p.Version == 3, "a file whose entry proves that it is the same is read")
}

// TestCheckWhileWritten takes a file that is written all the time as it is once in a while.
func TestCheckWhileWritten(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.log", "")
	text := ""
	for range 5 {
		text += "line\n"
		saveFile(t, h.cwd, "a.log", text)
		p := h.check("a.log")
		kit.Require(t, p.Version == 1 && !p.changingSince.IsZero(), "it is read while it is written: %+v", p)
	}
	p := h.check("a.log")
	kit.Require(t, p.Version == 2, "version %d, want 2", p.Version)
	saveFile(t, h.cwd, "a.log", "x")
	p = h.check("a.log")
	p.changingSince = time.Now().Add(-maxChanging)
	h.put(p, false)
	saveFile(t, h.cwd, "a.log", "xy")
	p = h.check("a.log")
	kit.Check(t, p.Version == 3, "version %d, want 3", p.Version)
}

// TestLinkOtherCase takes one file by two spellings, where the file system does, as one document.
func TestLinkOtherCase(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("docs/Spec.md", "x")
	if _, err := os.Stat(h.cwd + "/DOCS/spec.MD"); err != nil {
		t.Skip("names differ by case here")
	}
	h.linkNow("DOCS/spec.MD")
	kit.Equal(t, "documents", len(h.list(sessionA, true)), 1)
}

// TestMostLinked refuses more documents than a session can have.
func TestMostLinked(t *testing.T) {
	h := newHarness(t)
	for n := range maxLinked {
		p := trackedDocument{}
		p.Session, p.Path, p.Linked = sessionA, string(rune('a'+n)), true
		h.put(p, true)
	}
	saveFile(t, h.cwd, "one-more.md", "x")
	err := h.link(t.Context(), linkRequest{session: sessionA, path: "one-more.md", by: byUser, line: -1})
	kit.Check(t, err != nil, "it is linked")
}

// TestNothingLinked has no reason to wake up when nothing is linked.
func TestNothingLinked(t *testing.T) {
	h := newHarness(t)
	_, any := h.untilDue(time.Now())
	kit.Check(t, !any, "something is checked though nothing was ever linked")
	h.saveLinked("a.md", "x")
	_, any = h.untilDue(time.Now())
	kit.Check(t, any, "what is linked is not checked")
	kit.Must(t, h.unlink(t.Context(), linkRequest{session: sessionA, path: "a.md", by: byUser, line: -1}))
	_, any = h.untilDue(time.Now())
	kit.Check(t, !any, "what is no longer linked is checked")
}

// TestForgetsAtOnce has nothing of a session's documents left, in memory and on disk.
func TestForgetsAtOnce(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.md", "x")
	kit.Must(t, h.Forget(t.Context(), sessionA))
	kit.Check(t, len(h.list(sessionA, false)) == 0, "documents are left")
	if h.reload(); len(h.sessions) > 0 {
		t.Errorf("%d sessions are left on disk", len(h.sessions))
	}
}

// TestNotSent queues a version that could not be sent again at the next check, and reports the problem until then.
func TestNotSent(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.md", "one")
	stale := h.check("a.md")
	said := func() string {
		d, err := h.List(t.Context(), sessionA)
		kit.Require(t, err == nil && len(d.Documents) == 1, "%v %v", d, err)
		return d.Documents[0].Problem
	}
	kit.Equal(t, "nothing is wrong", said(), "")
	h.NotSent(projection.MissedDocument{Session: sessionA, Path: "a.md", SHA256: stale.SHA256})
	h.put(stale, false) // by a check that began before
	kit.Equal(t, "problem", said(), notSentProblem)
	if p := h.check("a.md"); p.Dest == "" || p.Version != 1 || h.rows() != 2 || said() != "" {
		t.Errorf("checked again: %+v, %d rows, %q", p, h.rows(), said())
	}
	h.NotSent(projection.MissedDocument{Session: "another", Path: "a.md"})
	h.NotSent(projection.MissedDocument{Session: sessionA, Path: "never.md"})
	kit.Equal(t, "documents", len(h.list(sessionA, false)), 1)
}

// TestUnchanged finds by one call of the system that nothing has happened, and only then.
func TestUnchanged(t *testing.T) {
	h := newHarness(t)
	unchanged := func(what string, want bool) {
		t.Helper()
		h.work.Lock()
		defer h.work.Unlock()
		s := kit.Try(h.Locate(t.Context(), sessionA)).Must(t)
		got := h.unchanged(s)
		kit.Check(t, got == want, "%s: unchanged %v, want %v", what, got, want)
	}
	settle := func() {
		t.Helper()
		h.check("a.md")
		h.until("its stamp proves it", func() bool { return !h.check("a.md").unproven })
	}
	path := h.saveLinked("a.md", "one")
	unchanged("written just now", false)
	settle()
	unchanged("settled", true)
	saveFile(t, h.cwd, "a.md", "three")
	unchanged("changed", false)
	settle()
	unchanged("read", true)
	p := h.check("a.md")
	p.changingSince = time.Now()
	h.put(p, false)
	unchanged("it was being written", false)
	h.check("a.md")
	unchanged("it was not", true)
	next := saveFile(t, h.cwd, "b.md", "three")
	kit.Must(t, os.Rename(next, path))
	unchanged("another file in its place", false)
	settle()
	kit.Must(t, os.Remove(path))
	unchanged("away", false)
	h.check("a.md")
	unchanged("missing at one check", false)
	h.check("a.md")
	unchanged("deleted", true)
	kit.Must(t, os.Mkdir(path, 0o700))
	unchanged("a folder in its place", false)
	kit.Must(t, errors.Join(os.Remove(path), os.WriteFile(path, []byte("again"), 0o600)))
	settle()
	p = h.check("a.md")
	p.Dest = ""
	h.put(p, false)
	unchanged("to be sent", false)
	h.check("a.md")
	unchanged("sent", true)
	saveFile(t, h.cwd, ".ccshipignore", "")
	h.projects.Recheck, h.policies = 0, nil
	unchanged("excluded", false)
	h.check("a.md")
	unchanged("excluded, and said so", true)
	kit.Must(t, h.unlink(t.Context(), linkRequest{session: sessionA, path: "a.md", by: byUser, line: -1}))
	unchanged("unlinked, to be told to nobody", true)
}

// TestPace checks less often the more documents there are, within bounds, and soon where something happens.
func TestPace(t *testing.T) {
	t.Parallel()
	const cost = 100 * time.Microsecond
	now := time.Now()
	h := newTracker(Deps{})
	add := func(n int, active time.Time) (last *sessionDocuments) {
		for range n {
			last = h.session(strconv.Itoa(len(h.sessions)))
			last.documents["a.md"], last.active, last.cost = trackedDocument{}, active, cost
		}
		return last
	}
	is := func(what string, of *sessionDocuments, soon bool, want time.Duration) {
		t.Helper()
		got := h.pause(of, soon)
		kit.Check(t, got == want, "%s: every %v, want %v", what, got, want)
	}
	hot := add(1, now)
	is("one", hot, false, shortInterval)
	add(59, now)
	is("sixty", hot, false, 12*time.Second)
	is("one of sixty that is being written", hot, true, shortInterval)
	kit.Check(t, h.activeInterval == 12*time.Second, "what is active is checked within %v", h.activeInterval)
	add(500, now)
	is("hundreds", hot, false, middleInterval)
	warm := add(1, now.Add(-shortFor))
	is("one of yesterday", warm, false, middleInterval)
	add(599, now.Add(-shortFor))
	is("hundreds of yesterday", warm, false, 2*time.Minute)
	cold := add(9, now.Add(-middleFor))
	is("old ones", cold, false, longInterval)
	h.started = now
	end := h.pauseEnd(12 * time.Second)
	kit.Check(t, end.Sub(now)%shortInterval == 0 && !end.Before(now.Add(12*time.Second)), "a pause of twelve seconds ends after %v", end.Sub(now))
	for _, s := range h.sessions {
		s.documents["a.md"] = trackedDocument{Document: projection.Document{Dest: "told"}}
	}
	is("when all are unlinked", hot, false, shortInterval)
}

// TestCost takes in a check that a busy machine delayed little by little, and a quick one at once.
func TestCost(t *testing.T) {
	t.Parallel()
	s := &sessionDocuments{}
	s.addCost(time.Second)
	kit.Check(t, s.cost <= 2*firstCost, "%v after a check that was delayed", s.cost)
	for range 200 {
		s.addCost(time.Millisecond)
	}
	kit.Check(t, s.cost == time.Millisecond, "%v after many checks of a millisecond", s.cost)
	if s.addCost(10 * time.Microsecond); s.cost != 10*time.Microsecond {
		t.Errorf("%v after a quick check", s.cost)
	}
}

// TestActivityDuringVisit keeps what happens in a session while its documents are checked: they are checked again soon.
func TestActivityDuringVisit(t *testing.T) {
	h := newHarness(t)
	h.saveLinked("a.md", "x")
	h.onLocate = func() { h.noteActivity(sessionA, nil) }
	h.visit(t.Context(), sessionA)
	if s := h.sessions[sessionA]; time.Since(s.active) > time.Minute || time.Until(s.due) > shortInterval {
		t.Errorf("active at %v, checked again in %v", s.active, time.Until(s.due))
	}
}

// TestPrivateFiles: files for keys and passwords are linked for nobody, by no name, but for a person who insists.
func TestPrivateFiles(t *testing.T) {
	h := newHarness(t)
	names := []string{".env", ".env.local", "deep/.ssh/id_rsa", ".aws/credentials", ".gnupg/trust.db", "tls/server.pem", "tls/Server.KEY", ".envrc",
		"home/.local/share/keyrings/login.keyring", ".netrc", ".docker/config.json",
		".claude/.credentials.json", ".claude.json", "prod.env", "infra/terraform.tfstate", ".config/gcloud/x.db", ".cargo/credentials.toml",
		"config/secrets.yml", ".bash_history", "id_ed25519_sk", "AuthKey.p8",
		".m2/settings.xml", ".gradle/gradle.properties", ".config/rclone/rclone.conf.bak", ".config/containers/auth.json", "site/wp-config.php",
		"etc/wireguard/wg0.conf", ".oci/config", "etc/shadow-", ".terraformrc", ".config/fish/fish_history", "store.jceks"}
	for _, name := range names {
		saveFile(t, h.cwd, name, "s3cret")
		if err := os.Symlink(filepath.Join(h.cwd, name), filepath.Join(h.cwd, "innocent.md")); err != nil {
			t.Skip(err)
		}
		for _, path := range []string{name, "innocent.md"} {
			for _, by := range []string{byUser, byMCP, byViewer} {
				err := h.link(t.Context(), linkRequest{session: sessionA, path: path, by: by, private: by != byUser, line: -1, id: "w"})
				r, ok := errors.AsType[*refusedError](err)
				kit.Check(t, ok && strings.Contains(r.Message, "keys or passwords"), "%s, which is %s, is linked for %s: %v", path, name, by, err)
			}
		}
		kit.Must(t, os.Remove(filepath.Join(h.cwd, "innocent.md")))
	}
	if _, err := h.Link(t.Context(), control.DocumentRequest{Session: sessionA, Path: ".env", AllowSecret: true}); err != nil {
		t.Fatalf("the user's own command: %v", err)
	}
	saveFile(t, h.cwd, ".env", "s3cret, changed")
	h.check(".env")
	p := h.check(".env")
	kit.Check(t, p.Version == 2 && p.problem == "", "a file that the user allowed: %+v", p)
	c, err := h.Guard.Open(h.cwd, ".env", nil)
	kit.Require(t, err == nil, "a file that the user allowed is not sent: %v", err)
	c.Close()
	kit.Must(t, errors.Join(os.Remove(filepath.Join(h.cwd, ".env")), os.Symlink("deep/.ssh/id_rsa", filepath.Join(h.cwd, ".env"))))
	h.check(".env")
	p = h.check(".env")
	kit.Check(t, p.Version == 2 && strings.Contains(p.problem, "keys or passwords"), "another secret in the place of the one that was allowed: %+v", p)
}

// TestPrivateFileInADocumentsPlace: a link instead of a document leads to no secret.
func TestPrivateFileInADocumentsPlace(t *testing.T) {
	h := newHarness(t)
	saveFile(t, h.cwd, ".env", "s3cret")
	doc := h.saveLinked("doc.md", "public")
	if err := errors.Join(os.Remove(doc), os.Symlink(".env", doc)); err != nil {
		t.Skip(err)
	}
	h.check("doc.md")
	p := h.check("doc.md")
	kit.Check(t, p.Version == 1 && strings.Contains(p.problem, "keys or passwords"), "version %d, %q", p.Version, p.problem)
	if c, err := h.Guard.Open(h.cwd, "doc.md", nil); err == nil {
		text, _ := io.ReadAll(io.NewSectionReader(c, 0, c.Size()))
		t.Errorf("it is sent: %q", text)
		c.Close()
	}
}

// On Windows, other names are the same file.
func TestPrivateNames(t *testing.T) {
	for _, path := range []string{"/p/id_rsa.", "/p/ID_RSA ", "/p/server.key::$DATA", "/p/a:b.key"} {
		kit.Check(t, private(path), "%q does not count as private", path)
	}
}

// TestPrivatePaths: what a file is for may be said by its path, and a copy holds what the file does.
func TestPrivatePaths(t *testing.T) {
	for _, path := range []string{"/p/.git/config", "/home/kim/.config/gh/hosts.yml", "/p/.yarnrc.yml", "/p/.env.bak", "/p/id_rsa.old", "/p/server.key~", "/p/.npmrc.orig.bak",
		"/p/.git/config.bak", "/p/secrets.yml.swp", "/p/credentials.json.save"} {
		kit.Check(t, private(path), "%s does not count as private", path)
	}
}

// Files that only look a little like them are documents like any other.
func TestNotPrivate(t *testing.T) {
	for _, path := range []string{"/p/environment.md", "/p/ssh/notes.md", "/p/keys.md", "/p/key", "/p/pem.txt", "/p/docs/keyring.md", "/p/aws.md", "/p/credentials.md",
		"/p/secrets.md", "/p/env", "/p/config", "/p/gh/hosts.md", "/p/plan.md.bak", "/p/git/config", "/p/~", "/p/tfstate.md"} {
		kit.Check(t, !private(path), "%s counts as private", path)
	}
}
