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
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

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
