package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// fakeRelease has archives for all systems, with scripts for programs, and what is made from them.
func fakeRelease(t *testing.T) *release {
	t.Helper()
	r := &release{out: t.TempDir(), work: t.TempDir(), version: "v1.2.3", epoch: time.Unix(1_700_000_000, 0), systems: systems(), said: t.Output()}
	t.Chdir(filepath.Join("..", ".."))
	for _, dir := range []string{"man", "completions"} {
		kit.Must(t, os.MkdirAll(filepath.Join(r.sharePath(), dir), 0o755))
		for _, program := range programs {
			for _, name := range map[string][]string{"man": {".1.gz"}, "completions": {".bash", ".fish", ".zsh"}}[dir] {
				kit.Must(t, os.WriteFile(filepath.Join(r.sharePath(), dir, program+name), nil, 0o644))
			}
		}
	}
	for _, s := range r.systems {
		kit.Must(t, os.MkdirAll(r.bin(s), 0o755))
		for _, program := range binaries {
			script := "#!/bin/sh\necho " + program + " for " + s.String() + "\nexit 3\n"
			kit.Must(t, os.WriteFile(filepath.Join(r.bin(s), executable(program, s)), []byte(script), 0o755))
		}
	}
	_, key, err := ed25519.GenerateKey(nil)
	kit.Must(t, err)
	r.signer = &signer{key}
	kit.Must(t, r.archives(t.Context()))
	kit.Must(t, r.formula(t.Context()))
	kit.Must(t, r.installer(t.Context()))
	kit.Must(t, r.checksums(t.Context()))
	kit.Must(t, r.signature(t.Context()))
	return r
}

// installation is a run of the install script. HOME and FAKE in path and env stand for folders of the run: a home, and
// one with a uname of a machine that has no archive.
type installation struct {
	name, url string
	path      string   // besides the usual one
	before    string   // what ~/.local/bin/ccship was
	env       []string // besides the usual one
	code      int
	says      []string
}

// TestInstallScript runs the script against a file server on loopback.
func TestInstallScript(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	r := fakeRelease(t)
	host := system{runtime.GOOS, runtime.GOARCH}
	files := http.FileServer(http.Dir(r.out))
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.Contains(req.URL.Path, "//") { // a file server would pass over it, others don't
			http.NotFound(w, req)
			return
		}
		files.ServeHTTP(w, req)
	}))
	defer served.Close()
	mirror := func(change func(dir string)) string {
		dir := t.TempDir()
		kit.Must(t, os.CopyFS(dir, os.DirFS(r.out)))
		change(dir)
		web := httptest.NewServer(http.FileServer(http.Dir(dir)))
		t.Cleanup(web.Close)
		return web.URL
	}
	write := func(name, text string) func(string) {
		return func(dir string) { kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) }
	}
	sums := kit.Try(os.ReadFile(filepath.Join(r.out, "checksums.txt"))).Must(t)
	otherKey := &signer{ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	shorter := strings.ReplaceAll(string(sums), r.archiveName(host), "another")
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()

	tests := []installation{
		{name: "first time", url: served.URL, says: []string{"installed ccship 1.2.3 in", "not on your PATH", "/.local/bin/ccship setup"}},
		{name: "with a slash, on the PATH", url: served.URL + "/", path: "HOME/.local/bin", says: []string{": ccship up", ": ccship setup"}},
		{name: "over an older one", url: served.URL, before: "#!/bin/sh\nexit 1\n", says: []string{"installed ccship 1.2.3 in"}},
		{name: "another folder", url: served.URL, env: []string{"CCSHIP_INSTALL_DIR=HOME/my programs"}, says: []string{"/my programs/ccship' setup"}},
		{name: "not what was released", url: mirror(write(r.archiveName(host), "something else")), before: "old", code: 1, says: []string{"install: the archive does not match the release", "hint: nothing was installed"}},
		{name: "other sums", url: mirror(write("checksums.txt", shorter)), before: "old", code: 1, says: []string{"install: checksums.txt is not signed with the release key", "hint: nothing was installed"}},
		{name: "another key's signature", url: mirror(write("checksums.txt.minisig", otherKey.sign(sums, "x"))), before: "old", code: 1, says: []string{"is not signed with the release key"}},
		{name: "no signature", url: mirror(func(dir string) { kit.Must(t, os.Remove(filepath.Join(dir, "checksums.txt.minisig"))) }), before: "old", code: 1, says: []string{"install: can't download", "hint: the mirror needs it"}},
		{name: "an empty signature", url: mirror(write("checksums.txt.minisig", "")), before: "old", code: 1, says: []string{"is not signed with the release key"}},
		{name: "signed sums without the archive", url: mirror(func(dir string) {
			write("checksums.txt", shorter)(dir)
			write("checksums.txt.minisig", r.signer.sign([]byte(shorter), "x"))(dir)
		}), before: "old", code: 1, says: []string{"install: the archive is not in the signed checksums.txt"}},
		{name: "no such archive", url: empty.URL, before: "old", code: 1, says: []string{"install: can't download " + empty.URL, "hint: try again"}},
		{name: "unknown machine", url: served.URL, path: "FAKE", code: 1, says: []string{"on s390x", "hint: build it"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runInstaller(t, r, test)
		})
	}
}

// runInstaller runs the script once, in a home of its own.
func runInstaller(t *testing.T, r *release, test installation) {
	t.Helper()
	home, fake := t.TempDir(), t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(fake, "uname"), []byte("#!/bin/sh\ncase $1 in -s) echo Linux ;; *) echo s390x ;; esac\n"), 0o755))
	program := filepath.Join(home, ".local", "bin", "ccship")
	if test.before != "" {
		kit.Must(t, os.MkdirAll(filepath.Dir(program), 0o755))
		kit.Must(t, os.WriteFile(program, []byte(test.before), 0o755))
	}
	fill := strings.NewReplacer("HOME", home, "FAKE", fake)
	cmd := exec.Command("sh", filepath.Join(r.out, "install.sh"))
	cmd.Env = []string{"HOME=" + home, "PATH=" + fill.Replace(test.path) + ":" + os.Getenv("PATH"), "CCSHIP_DOWNLOAD_URL=" + test.url, "TMPDIR=" + t.TempDir()}
	for _, setting := range test.env {
		name, value, _ := strings.Cut(setting, "=")
		cmd.Env = append(cmd.Env, name+"="+fill.Replace(value))
		program = filepath.Join(home, "my programs", "ccship")
	}
	out, err := cmd.CombinedOutput()
	kit.Equal(t, fmt.Sprintf("exit code (%v)", err), cmd.ProcessState.ExitCode(), test.code)
	for _, want := range test.says {
		kit.Has(t, "it does", string(out), want)
	}
	checkInstalled(t, program, test.before, test.code == 0)
}

// TestInstallScriptPlaces: where the programs cannot be put the script says what to do, and leaves what was there; a
// folder with any name is one word of the commands that it prints.
func TestInstallScriptPlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	r := fakeRelease(t)
	served := httptest.NewServer(http.FileServer(http.Dir(r.out)))
	defer served.Close()
	for _, c := range []struct {
		name, into, prepare string // prepare is run in the folder of the test, where the script runs too
		code                int
		says                []string
	}{
		{"no HOME", "", "", 1, []string{"install: HOME is not set", "hint: set CCSHIP_INSTALL_DIR"}},
		{"a file in the folder's place", "HERE/file/bin", "echo x >file", 1, []string{"install: can't make the folder", "hint: set CCSHIP_INSTALL_DIR"}},
		{"a folder in a program's place", "HERE/bin", "mkdir -p bin/ccship-mcp", 1, []string{"ccship-mcp is a folder", "hint: move it away"}},
		{"a disk that fills", "HERE/bin", `mkdir fake; printf '#!/bin/sh\ncase $1 in *-mcp) exit 1 ;; esac\nexec /bin/cp "$@"\n' >fake/cp; chmod 755 fake/cp`, 1,
			[]string{"install: can't write to", "nothing was installed", "hint: free disk space"}},
		{"a relative folder", "-x y", "", 0, []string{"installed ccship 1.2.3 in HERE/-x y", `export PATH='HERE/-x y':"$PATH"`}},
		{"quotes in its name", "HERE/it's $(id)", "", 0, []string{`: 'HERE/it'\''s $(id)/ccship' up`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			fill := func(text string) string { return strings.ReplaceAll(text, "HERE", dir) }
			old := filepath.Join(dir, "bin", "ccship")
			kit.WriteFile(t, old, "old")
			run := func(env []string, args ...string) (string, int) {
				cmd := exec.Command("sh", args...)
				cmd.Dir, cmd.Env = dir, append(env, "PATH="+dir+"/fake:"+os.Getenv("PATH"), "TMPDIR="+t.TempDir())
				out, _ := cmd.CombinedOutput()
				return string(out), cmd.ProcessState.ExitCode()
			}
			_, code := run(nil, "-c", c.prepare)
			kit.Equal(t, "prepare", code, 0)
			out, code := run([]string{"CCSHIP_DOWNLOAD_URL=" + served.URL, "CCSHIP_INSTALL_DIR=" + fill(c.into)},
				filepath.Join(r.out, "install.sh"))
			kit.Equal(t, "exit code of "+out, code, c.code)
			for _, want := range c.says {
				kit.Has(t, "it says", out, fill(want))
			}
			kit.Equal(t, "what was there", string(kit.Try(os.ReadFile(old)).Must(t)), "old")
			entries := kit.Try(os.ReadDir(filepath.Dir(old))).Must(t)
			kit.Check(t, len(entries) <= 2, "it leaves %v", entries)
		})
	}
}

// TestInstallScriptStalls: a server that stops in the middle does not hold the script up for ever. A curl in front of the
// real one has seconds instead of half a minute.
func TestInstallScriptStalls(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs a shell and curl")
	}
	r := fakeRelease(t)
	stalled := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}))
	defer stalled.Close()
	bin, tmp := t.TempDir(), t.TempDir()
	faster := "#!/bin/sh\nfor a; do\n\tshift\n\tif [ \"$a\" = 30 ]; then a=1; fi\n\tset -- \"$@\" \"$a\"\ndone\nexec " + curl + " \"$@\"\n"
	kit.Must(t, os.WriteFile(filepath.Join(bin, "curl"), []byte(faster), 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", filepath.Join(r.out, "install.sh"))
	cmd.WaitDelay = time.Second
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + bin + ":" + os.Getenv("PATH"), "CCSHIP_DOWNLOAD_URL=" + stalled.URL, "TMPDIR=" + tmp}
	out, _ := cmd.CombinedOutput()
	kit.Require(t, ctx.Err() == nil, "it still waits:\n%s", out)
	kit.Equal(t, "exit code", cmd.ProcessState.ExitCode(), 1)
	kit.Has(t, "it says", string(out), "install: can't download", "hint: try again")
	kit.Equal(t, "it leaves", len(kit.Try(os.ReadDir(tmp)).Must(t)), 0)
}

// checkInstalled looks at the programs after a run that succeeded or failed.
func checkInstalled(t *testing.T, program, before string, ok bool) {
	t.Helper()
	content, err := os.ReadFile(program)
	if !ok {
		kit.Equal(t, fmt.Sprintf("a failed run leaves (%v)", err), string(content), before)
		return
	}
	for _, name := range binaries {
		path := filepath.Join(filepath.Dir(program), name)
		content := kit.Try(os.ReadFile(path)).Must(t)
		kit.Has(t, name, string(content), "echo "+name+" for "+runtime.GOOS+"/"+runtime.GOARCH)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %v (%v)", name, info.Mode(), err)
		}
	}
	entries := kit.Try(os.ReadDir(filepath.Dir(program))).Must(t)
	kit.Equal(t, fmt.Sprintf("the folder has %v", entries), len(entries), len(binaries))
}

// TestFormula: every archive with its own sum, every file the formula installs is in the archives, a service that
// Homebrew keeps alive.
func TestFormula(t *testing.T) {
	r := fakeRelease(t)
	text := kit.Try(os.ReadFile(filepath.Join(r.out, "ccship.rb"))).Must(t)
	formula := string(text)
	pairs := regexp.MustCompile(`url "https://github.com/ccship/ccship/releases/download/v1\.2\.3/([^"]+)"\n\s+sha256 "([0-9a-f]{64})"`).FindAllStringSubmatch(formula, -1)
	var seen []string
	for _, pair := range pairs {
		sum := kit.Try(sumOf(filepath.Join(r.out, pair[1]))).Must(t)
		if sum != pair[2] {
			t.Errorf("%s has sum %s, not %s", pair[1], sum, pair[2])
		}
		seen = append(seen, pair[1])
	}
	slices.Sort(seen)
	want := []string{"ccship_1.2.3_darwin_amd64.tar.gz", "ccship_1.2.3_darwin_arm64.tar.gz", "ccship_1.2.3_linux_amd64.tar.gz", "ccship_1.2.3_linux_arm64.tar.gz"}
	kit.Equal(t, "archives", seen, want)
	entries := kit.Try(r.entries(system{"darwin", "arm64"})).Must(t)
	for _, file := range []string{"ccship", "ccship-hook", "ccship-mcp", "ccship-server", "man/ccship.1.gz", "completions/ccship.bash", "completions/ccship-server.fish", "completions/ccship.zsh"} {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.name == "ccship_1.2.3_darwin_arm64/"+file }) {
			t.Errorf("%s is not in the archive", file)
		}
	}
	for _, part := range []string{"class Ccship < Formula", "service do", `run [opt_bin/"ccship", "run"]`, "keep_alive successful_exit: false", "test do"} {
		kit.Has(t, "the formula lacks", formula, part)
	}
	if _, err := exec.LookPath("ruby"); err != nil {
		t.Log("ruby is missing: the formula's syntax is not checked")
		return
	}
	kit.Err(t, "ruby -c", nil)(exec.Command("ruby", "-c", filepath.Join(r.out, "ccship.rb")).CombinedOutput())
}

// TestChecksums: sha256sum finds every file as it was released, and none is left out.
func TestChecksums(t *testing.T) {
	r := fakeRelease(t)
	entries := kit.Try(os.ReadDir(r.out)).Must(t)
	text := kit.Try(os.ReadFile(filepath.Join(r.out, "checksums.txt"))).Must(t)
	if lines := strings.Count(string(text), "\n"); lines != len(entries)-3 { // the list itself, its signature and the key have none
		t.Errorf("%d sums for %d files", lines, len(entries))
	}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		kit.Gives(t, "sum of "+name, sum)(sumOf(filepath.Join(r.out, name)))
	}
}

// TestPublished: goreleaser publishes the files that were built here, and builds none.
func TestPublished(t *testing.T) {
	text := kit.Try(os.ReadFile(filepath.Join("..", "goreleaser.yaml"))).Must(t)
	for _, part := range []string{"\nversion: 2\n", "\nbuilds:\n  - skip: true\n", "    - glob: dist/*\n", "  disable: true"} {
		kit.Has(t, "goreleaser.yaml lacks", string(text), part)
	}
}

// TestTemplateWithoutSum: a system that was not built must not leave a hole in the script.
func TestTemplateWithoutSum(t *testing.T) {
	r := fakeRelease(t)
	r.systems = r.systems[:1]
	err := r.installer(t.Context())
	kit.Check(t, err != nil, "an install script without the sums of some systems is made")
}
