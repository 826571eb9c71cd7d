package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/transcript/planted"
)

func bundleNames() *names {
	return newNames("/home/kim", "kim", "kims-laptop", []string{"https://ccship.acme.example:8443/x", "http://127.0.0.1:5000"})
}

func TestNames(t *testing.T) {
	n := bundleNames()
	for text, want := range map[string]string{
		"server https://ccship.acme.example:8443/x answers": "server https://server-1.invalid:8443/x answers",
		"server http://127.0.0.1:5000/api/me":               "server http://127.0.0.1:5000/api/me",
		"kim on kims-laptop, kimono":                        "[user] on [machine], kimono",
		"/home/kim/.config/ccship/config.toml:3":            "~/.config/ccship/config.toml:3",
		"socket /run/user/1000/ccship/ccship.sock":          "socket /run/user/1000/ccship/ccship.sock",
		"a line without paths, 3/4 of them":                 "a line without paths, 3/4 of them",
	} {
		if got := n.From(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	const file = "0b6d5d4e-0000-4000-8000-000000000001.jsonl"
	first := n.From(`watch "/home/kim/.claude/projects/-home-kim-clients-acme/` + file + `"`)
	if strings.Contains(first, "acme") || !strings.Contains(first, "~/.claude/projects/[project ") || !strings.Contains(first, file) {
		t.Errorf("a transcript became %q", first)
	}
	again := n.From("-home-kim-x /home/kim/.claude/projects/-home-kim-clients-acme/notes-of-acme.md")
	if strings.Contains(again, "acme") || strings.Contains(again, "kim") {
		t.Errorf("a project became %q", again)
	}
	if word := first[strings.Index(first, "[project"):strings.Index(first, "/"+file)]; !strings.Contains(again, word) {
		t.Errorf("one project became two: %q, %q", first, again)
	}
	for _, path := range []string{"/home/kim/clients/acme", "/srv/acme/x.go", `C:\Users\kim\acme`, "~/acme"} {
		if got := n.From("exclude " + path + " done"); strings.Contains(got, "acme") || !strings.HasPrefix(got, "exclude ") ||
			!strings.HasSuffix(got, " done") {
			t.Errorf("%q became %q", path, got)
		}
	}
}

// read opens an archive again.
func read(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for archive := tar.NewReader(packed); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		parts[head.Name] = string(text)
	}
}

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	var log strings.Builder
	secrets := map[string]string{} // by kind
	r := rand.New(rand.NewPCG(1, 2))
	for kind, form := range planted.Kinds() {
		text, secret := planted.Plant(r, form)
		secrets[kind] = secret
		log.WriteString("level=WARN msg=refused text:\n" + text + "\n")
	}
	contents, err := write(file, time.Unix(1_700_000_000, 0), bundleNames(),
		part{Name: "log.txt", Text: log.String()},
		part{Name: "status.json", Err: errors.New("the daemon is not running")},
	)
	if err != nil || len(contents) != 2 {
		t.Fatalf("%q, %v", contents, err)
	}
	parts := read(t, file)
	clear := 0
	for kind, secret := range secrets {
		if strings.Contains(parts["ccship-report/log.txt"], secret) {
			clear++
			t.Logf("in clear: %s", kind)
		}
	}
	if len(secrets) < 35 || clear*50 > len(secrets) {
		t.Errorf("%d of %d secrets are in clear", clear, len(secrets))
	}
	if got := parts["ccship-report/status.json"]; got != "not to be had: the daemon is not running\n" {
		t.Errorf("a missing part is %q", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive: %v, %v", info, err)
	}
	if _, err := write(file, time.Now(), bundleNames()); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second archive of that name: %v", err)
	}
	if len(read(t, file)) != 2 {
		t.Error("the first archive was harmed")
	}
}
