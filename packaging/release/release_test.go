package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/packaging"
)

const epochOfTests = "1700000000"

// needTool skips where a tool is neither in the module cache nor to be had.
func needTool(t *testing.T, name string) {
	t.Helper()
	cmd := exec.Command("go", "tool", "-modfile=packaging/tools.mod", "-n", name)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("%s can't be had from here: %v\n%s", name, err, out)
	}
}

// build runs the command in a module's root and returns the folder with what it made.
func build(t *testing.T, root string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command("go", append([]string{"run", "./packaging/release", "-version", "v1.2.3-rc.1", "-out", out}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+epochOfTests)
	text, err := cmd.CombinedOutput()
	kit.Require(t, err == nil, "release %q: %v\n%s", args, err, text)
	return out
}

// packed is a file in a package.
type packed struct {
	mode    fs.FileMode
	owner   string
	content []byte
}

// openDeb reads a deb's control files and contents, names without the leading dot.
func openDeb(t *testing.T, path string) (control, data map[string]packed) {
	t.Helper()
	f := kit.Try(os.Open(path)).Must(t)
	defer f.Close()
	r := bufio.NewReader(f)
	magic, err := r.Peek(8)
	kit.Require(t, err == nil && string(magic) == "!<arch>\n", "%s begins with %q, %v", path, magic, err)
	kit.Try(r.Discard(8)).Must(t)
	for {
		header := make([]byte, 60)
		if _, err := io.ReadFull(r, header); errors.Is(err, io.EOF) {
			return control, data
		} else if err != nil {
			t.Fatal(err)
		}
		size := kit.Try(strconv.ParseInt(strings.TrimSpace(string(header[48:58])), 10, 64)).Must(t)
		member := make([]byte, size+size%2)
		kit.Try(io.ReadFull(r, member)).Must(t)
		switch name := strings.TrimRight(string(header[:16]), " /"); name {
		case "control.tar.gz":
			control = untar(t, member)
		case "data.tar.gz":
			data = untar(t, member)
		}
	}
}

func untar(t *testing.T, data []byte) map[string]packed {
	t.Helper()
	z := kit.Try(gzip.NewReader(bytes.NewReader(data))).Must(t)
	files := map[string]packed{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		kit.Must(t, err)
		if h.Typeflag == tar.TypeDir {
			continue
		}
		content := kit.Try(io.ReadAll(r)).Must(t)
		files[strings.TrimPrefix(h.Name, ".")] = packed{fs.FileMode(h.Mode), cmp.Or(h.Uname, fmt.Sprint(h.Uid)) + ":" + cmp.Or(h.Gname, fmt.Sprint(h.Gid)), content}
	}
}

// filesInDebs are the files of each program's package, with their modes.
func filesInDebs() map[string]map[string]fs.FileMode {
	return map[string]map[string]fs.FileMode{
		"ccship": {
			"/usr/bin/ccship":                                                 0o755,
			"/usr/bin/ccship-hook":                                            0o755,
			"/usr/bin/ccship-mcp":                                             0o755,
			"/usr/share/ccship/claude-plugin/README.md":                       0o644,
			"/usr/share/ccship/claude-plugin/.mcp.json":                       0o644,
			"/usr/share/ccship/claude-plugin/.claude-plugin/plugin.json":      0o644,
			"/usr/share/ccship/claude-plugin/.claude-plugin/marketplace.json": 0o644,
			"/usr/share/ccship/claude-plugin/hooks/hooks.json":                0o644,
			"/usr/lib/systemd/user/ccship.service":                            0o644,
			"/usr/lib/systemd/system/ccship@.service":                         0o644,
			"/usr/share/man/man1/ccship.1.gz":                                 0o644,
			"/usr/share/bash-completion/completions/ccship":                   0o644,
			"/usr/share/fish/vendor_completions.d/ccship.fish":                0o644,
			"/usr/share/zsh/vendor-completions/_ccship":                       0o644,
			"/usr/share/doc/ccship/copyright":                                 0o644,
		},
		"ccship-server": {
			"/usr/bin/ccship-server":                                  0o755,
			"/usr/lib/systemd/system/ccship-server.service":           0o644,
			"/usr/lib/sysusers.d/ccship-server.conf":                  0o644,
			"/etc/default/ccship-server":                              0o644,
			"/usr/share/man/man1/ccship-server.1.gz":                  0o644,
			"/usr/share/bash-completion/completions/ccship-server":    0o644,
			"/usr/share/fish/vendor_completions.d/ccship-server.fish": 0o644,
			"/usr/share/zsh/vendor-completions/_ccship-server":        0o644,
			"/usr/share/doc/ccship-server/copyright":                  0o644,
		},
	}
}

// TestDeb builds the packages for one system and looks into them. Built in another folder they are the same.
func TestDeb(t *testing.T) {
	needTool(t, "nfpm")
	one, other := copies(t)
	args := []string{"-systems", "linux/" + runtime.GOARCH, "-only", "deb"}
	dist := build(t, one, args...)
	compareReleases(t, dist, build(t, other, args...), 2)
	for program, want := range filesInDebs() {
		t.Run(program, func(t *testing.T) {
			control, data := openDeb(t, filepath.Join(dist, packageName(debs, program, "1.2.3~rc.1", runtime.GOARCH)))
			for name, f := range data {
				mode, wanted := want[name]
				switch {
				case !wanted:
					t.Errorf("%s is in it", name)
				case f.mode != mode || f.owner != "root:root":
					t.Errorf("%s has mode %o and belongs to %s, want %o and root:root", name, f.mode, f.owner, mode)
				}
			}
			for name := range want {
				_, ok := data[name]
				kit.Check(t, ok, "%s is not in it", name)
			}
			checkControl(t, program, control, data)
		})
	}
	_, data := openDeb(t, filepath.Join(dist, packageName(debs, "ccship", "1.2.3~rc.1", runtime.GOARCH)))
	for name, want := range map[string]string{
		"/usr/lib/systemd/user/ccship.service":    packaging.UserUnit,
		"/usr/lib/systemd/system/ccship@.service": packaging.SystemUnit,
	} {
		kit.Equal(t, name+" is", string(data[name].content), want)
	}
}

// checkControl looks at what dpkg gets: version, sums of all files, scripts that can be run.
func checkControl(t *testing.T, program string, control, data map[string]packed) {
	t.Helper()
	text := string(control["/control"].content)
	for _, line := range []string{"Package: " + program, "Version: 1.2.3~rc.1", "Architecture: " + runtime.GOARCH} {
		kit.Has(t, "control lacks "+line, text, line+"\n")
	}
	var sums []string
	for name, f := range data {
		sums = append(sums, fmt.Sprintf("%x  .%s", md5.Sum(f.content), name))
	}
	got := strings.Split(strings.TrimSpace(string(control["/md5sums"].content)), "\n")
	slices.Sort(sums)
	slices.Sort(got)
	kit.Equal(t, "md5sums", got, sums)
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		f, ok := control["/"+script]
		kit.Check(t, ok && f.mode == 0o755 && bytes.HasPrefix(f.content, []byte("#!/bin/sh\n")), "%s: there %t, mode %o",
			script, ok, f.mode)
	}
}

// copies are two copies of the tree in folders of other lengths: someone may be at work in the tree itself.
func copies(t *testing.T) (one, other string) {
	t.Helper()
	one, other = filepath.Join(t.TempDir(), "tree"), filepath.Join(t.TempDir(), "elsewhere", "tree")
	kit.Must(t, copyTree(filepath.Join("..", ".."), one))
	kit.Must(t, copyTree(one, other))
	return one, other
}

// compareReleases compares every byte of two releases.
func compareReleases(t *testing.T, first, second string, atLeast int) {
	t.Helper()
	files := kit.Try(os.ReadDir(first)).Must(t)
	others := kit.Try(os.ReadDir(second)).Must(t)
	kit.Check(t, len(files) >= atLeast && len(files) == len(others), "%d and %d files to compare, want %d or more",
		len(files), len(others), atLeast)
	for _, f := range files {
		a := kit.Try(os.ReadFile(filepath.Join(first, f.Name()))).Must(t)
		b := kit.Try(os.ReadFile(filepath.Join(second, f.Name()))).Must(t)
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs: %d and %d bytes", f.Name(), len(a), len(b))
		}
		if strings.HasSuffix(f.Name(), ".rpm") && !bytes.Contains(a, []byte("\x00localhost\x00")) {
			t.Errorf("%s does not say that it was built on localhost", f.Name())
		}
	}
}

// TestReproducible builds the release for every system in two folders, the second time with nothing compiled before;
// the bytes must be the same. It takes minutes. TestDeb compares the debs.
func TestReproducible(t *testing.T) {
	if !kit.HasSetting("twice") {
		t.Skip("lab release-twice runs it")
	}
	needTool(t, "nfpm")
	one, other := copies(t)
	first := build(t, one)
	t.Setenv("GOCACHE", t.TempDir())
	compareReleases(t, first, build(t, other), 5)
}

// copyTree copies a module without its version control and what was built from it; files get other times and modes.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "bin", "dist"}, name) {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o600)
	})
}

// TestPackageVersion: dpkg and rpm order versions by what they say.
func TestPackageVersion(t *testing.T) {
	inOrder := []string{"076afcb", "v0.9.0", "v1.0.0-rc.1", "v1.0.0-rc.1-2-g0a1b2c3", "v1.0.0-rc.2", "1.0.0", "v1.0.0-3-gabcdef0",
		"v1.0.0-3-gabcdef0-dirty", "v1.0.1", "v1.10.0"}
	want := []string{"0.0.0~076afcb", "0.9.0", "1.0.0~rc.1", "1.0.0~rc.1+2.0a1b2c3", "1.0.0~rc.2", "1.0.0", "1.0.0+3.abcdef0",
		"1.0.0+3.abcdef0+dirty", "1.0.1", "1.10.0"}
	for i, version := range inOrder {
		kit.Equal(t, version+" becomes", packageVersion(version), want[i])
		if _, err := exec.LookPath("dpkg"); err != nil || i == 0 {
			continue
		}
		if out, err := exec.Command("dpkg", "--compare-versions", want[i-1], "lt", want[i]).CombinedOutput(); err != nil {
			t.Errorf("for dpkg %s is not before %s: %v %s", want[i-1], want[i], err, out)
		}
	}
	for _, odd := range []string{"dev", "a/b c-d", ""} {
		got := packageVersion(odd)
		kit.Check(t, strings.HasPrefix(got, "0.0.0~") && !strings.ContainsAny(got, "/ -"), "%q becomes %q", odd, got)
	}
}

// TestNeeded builds the programs for those systems alone whose files are asked for.
func TestNeeded(t *testing.T) {
	linux := []system{{"linux", "amd64"}, {"linux", "arm64"}}
	for _, c := range []struct {
		only []string
		want []system
	}{
		{[]string{debs, rpms}, linux}, {[]string{debs, checksums, signature}, linux}, {[]string{checksums}, nil},
		{[]string{debs, archives}, systems()}, {[]string{sbom}, systems()}, {[]string{formula}, systems()},
	} {
		r := release{systems: systems(), only: c.only}
		kit.Equal(t, fmt.Sprint(c.only), r.needed(), c.want)
	}
	r := release{systems: []system{{"darwin", "arm64"}}, only: []string{rpms}}
	got := r.needed()
	kit.Check(t, got == nil, "packages of macOS alone: %v", got)
}

// TestArguments: what can't be built is said before anything is.
func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"-systems", "plan9/amd64"}, {"-only", "deb,msi"}, {"-no-such-flag"}} {
		err := command(t.Context(), args)
		kit.Check(t, err != nil, "%q is taken", args)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	err := command(t.Context(), nil)
	kit.Check(t, err != nil && strings.Contains(err.Error(), "yesterday"), "with a bad SOURCE_DATE_EPOCH: %v", err)
}
