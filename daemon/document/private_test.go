package document

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

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
