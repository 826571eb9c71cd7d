package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bin returns where the programs of a system are built.
func (r *release) bin(s system) string { return filepath.Join(r.work, s.os+"_"+s.arch) }

// sharePath returns where man pages and completions are made.
func (r *release) sharePath() string { return filepath.Join(r.work, "share") }

// executable returns a program's file name on a system.
func executable(program string, s system) string {
	if s.os == "windows" {
		return program + ".exe"
	}
	return program
}

// build compiles the programs for a system. Nothing of this machine gets into them.
func (r *release) build(ctx context.Context, s system) error {
	for _, program := range binaries {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w -buildid= -X main.version="+r.version,
			"-o", filepath.Join(r.bin(s), executable(program, s)), "./cmd/"+program)
		cmd.Env = append(os.Environ(), "GOOS="+s.os, "GOARCH="+s.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly",
			"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s for %s: %w\n%s", program, s, err, out)
		}
	}
	return nil
}

// share lets this machine's programs write their completions and be asked for their manual pages.
func (r *release) share(ctx context.Context) error {
	host := system{runtime.GOOS, runtime.GOARCH}
	if _, err := os.Stat(r.bin(host)); err != nil {
		if err := r.build(ctx, host); err != nil {
			return err
		}
	}
	for _, dir := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(r.sharePath(), dir), 0o755); err != nil {
			return err
		}
	}
	for _, program := range programs {
		path := filepath.Join(r.bin(host), executable(program, host))
		page, err := manualPage{Program: path, Version: r.version, Date: r.epoch}.Write(ctx)
		if err != nil {
			return fmt.Errorf("write manual page: %w", err)
		}
		if err := compress(filepath.Join(r.sharePath(), "man", program+".1.gz"), page); err != nil {
			return err
		}
		for _, shell := range []string{"bash", "fish", "zsh"} {
			cmd := exec.CommandContext(ctx, path, "completion", shell)
			cmd.Env = []string{"HOME=~"}
			script, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s completion %s: %w", program, shell, err)
			}
			if err := os.WriteFile(filepath.Join(r.sharePath(), "completions", program+"."+shell), script, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// compress writes a gzip file without name and time.
func compress(path, text string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write([]byte(text)); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}

// entry is a file in an archive.
type entry struct {
	from string // on disk
	name string // in the archive, with slashes
	mode fs.FileMode
}

// archiveName returns the file name of a system's archive.
func (r *release) archiveName(s system) string {
	name := fmt.Sprintf("ccship_%s_%s_%s", strings.TrimPrefix(r.version, "v"), s.os, s.arch)
	if s.os == "windows" {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// archives packs the programs of every system: tar.gz, or zip for Windows.
func (r *release) archives(context.Context) error {
	for _, s := range r.systems {
		entries, err := r.entries(s)
		if err != nil {
			return err
		}
		write := writeTar
		if s.os == "windows" {
			write = writeZip
		}
		name := r.archiveName(s)
		if err := write(filepath.Join(r.out, name), entries, r.epoch); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		r.made(name)
	}
	return nil
}

// entries returns the files of a system's archive, in order of their names, below one folder.
func (r *release) entries(s system) ([]entry, error) {
	folder := strings.TrimSuffix(strings.TrimSuffix(r.archiveName(s), ".tar.gz"), ".zip")
	all := []entry{{"LICENSE", "LICENSE", 0o644}, {"README.md", "README.md", 0o644}}
	for _, program := range binaries {
		file := executable(program, s)
		all = append(all, entry{filepath.Join(r.bin(s), file), file, 0o755})
	}
	for _, dir := range []string{"man", "completions"} {
		files, err := os.ReadDir(filepath.Join(r.sharePath(), dir))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			all = append(all, entry{filepath.Join(r.sharePath(), dir, f.Name()), dir + "/" + f.Name(), 0o644})
		}
	}
	for i := range all {
		all[i].name = path.Join(folder, all[i].name)
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// writeTar writes a tar.gz whose entries belong to nobody in particular and have one time.
func writeTar(name string, entries []entry, at time.Time) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, e := range entries {
		content, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	for _, c := range []io.Closer{w, z, f} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// writeZip writes a zip whose entries have one time.
func writeZip(name string, entries []entry, at time.Time) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := zip.NewWriter(f)
	for _, e := range entries {
		content, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		part, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}

// made notes a file of the release, and says so.
func (r *release) made(name string) {
	r.files = append(r.files, name)
	fmt.Fprintln(r.said, filepath.Join(r.out, name))
}

// described matches the output of git describe: a version, then optionally a pre-release, the number of commits since
// that tag with the commit's hash, and a mark that the working tree has uncommitted changes.
var described = regexp.MustCompile(
	`^v?(\d+\.\d+\.\d+)(?:-((?:alpha|beta|rc|pre)[0-9A-Za-z.]*))?(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)

// packageVersion spells a version so that dpkg and rpm order it: a pre-release comes before its release, a later commit
// after it. Text that is not a version comes before all versions.
func packageVersion(version string) string {
	m := described.FindStringSubmatch(version)
	if m == nil {
		return "0.0.0~" + regexp.MustCompile(`[^0-9A-Za-z.]+`).ReplaceAllString(version, ".")
	}
	v := m[1]
	if m[2] != "" {
		v += "~" + m[2]
	}
	if m[3] != "" {
		v += "+" + m[3] + "." + m[4]
	}
	if m[5] != "" {
		v += "+dirty"
	}
	return v
}

// epoch returns the time that everything in the release carries: SOURCE_DATE_EPOCH, else the commit's.
func epoch(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("ask git for the commit's time (SOURCE_DATE_EPOCH can name one): %w", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970: %w", text, err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
