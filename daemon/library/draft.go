package library

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// draft is a file on its way to its name, which it gets when it is whole. Its mode is 0600; folders that are missing
// are made with 0700.
type draft struct {
	*os.File
	path string
}

func newDraft(path string) (*draft, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".restore-*") // 0600; no reader takes it for a transcript
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return &draft{f, path}, nil
}

// discard removes what is left of the draft; after keep nothing is.
func (d *draft) discard() {
	_ = d.Close() // a second time does nothing
	_ = os.Remove(d.Name())
}

// keep gives the draft its name, durably. same says that the very bytes were there already; aside is where a different
// file went. A named file is not moved aside: it is left as it is, or replaced with force.
func (d *draft) keep(named, force bool) (same bool, aside string, err error) {
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return false, "", fmt.Errorf("restore %s: %w", d.path, err)
	}
	// What is put back is not being written: not for a daemon that looks on, nor for the next restore. Where the system
	// refuses that, it only looks newer than it is.
	before := time.Now().Add(-quiet)
	_ = os.Chtimes(d.Name(), before, before)
	if notThere(d.path) {
		return false, "", d.settle(d.link)
	}
	if same, err = equalFiles(d.Name(), d.path); err != nil || same {
		return same, "", err
	}
	switch {
	case named && !force:
		return false, "", there(d.path)
	case named:
		return false, "", d.settle(d.replace)
	}
	// Claude Code lists *.jsonl, and so does ccship.
	aside = d.path + ".before-restore-" + time.Now().UTC().Format("20060102T150405.000Z")
	if err := os.Link(d.path, aside); err == nil {
		return false, aside, d.settle(d.replace) // at no moment is there no file
	}
	if err := os.Rename(d.path, aside); err != nil {
		return false, "", fmt.Errorf("move %s aside: %w", d.path, err)
	}
	return false, aside, d.settle(d.link)
}

func there(path string) error {
	return control.NewError(CodeThere, path+" is there already",
		"name another file, or replace it with --force")
}

// link gives the draft its name only if nobody has it.
func (d *draft) link() error {
	err := os.Link(d.Name(), d.path)
	if errors.Is(err, os.ErrExist) {
		return there(d.path)
	}
	if err != nil && notThere(d.path) { // a file system without links
		return os.Rename(d.Name(), d.path)
	}
	return err
}

func (d *draft) replace() error { return os.Rename(d.Name(), d.path) }

// settle gives the draft its name and makes that durable.
func (d *draft) settle(name func() error) error {
	if err := name(); err != nil {
		return fmt.Errorf("restore %s: %w", d.path, err)
	}
	if runtime.GOOS == "windows" { // has no folders to sync
		return nil
	}
	dir, err := os.Open(filepath.Dir(d.path))
	if err != nil {
		return fmt.Errorf("restore %s: %w", d.path, err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("restore %s: %w", d.path, err)
	}
	return nil
}

// equalFiles compares two files byte for byte.
func equalFiles(a, b string) (bool, error) {
	x, err := os.Open(a)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	defer y.Close()
	p, q := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errX := io.ReadFull(x, p)
		m, errY := io.ReadFull(y, q)
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if errX != nil || errY != nil {
			ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
			if ended(errX) && ended(errY) {
				return true, nil
			}
			return false, fmt.Errorf("compare: %w", errors.Join(errX, errY))
		}
	}
}

// WriteFile writes what write writes to a file of mode 0600, which gets its name when it is whole. One that is there
// is a CodeThere unless force says that it may be replaced. It answers the number of bytes.
func WriteFile(path string, force bool, write func(io.Writer) error) (int64, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return 0, fmt.Errorf("write file: %w", err)
	}
	if !force && !notThere(path) {
		return 0, there(path)
	}
	d, err := newDraft(path)
	if err != nil {
		return 0, err
	}
	defer d.discard()
	if err := write(d); err != nil {
		return 0, err
	}
	n, err := d.Seek(0, io.SeekCurrent)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	name := d.link
	if force {
		name = d.replace
	}
	return n, d.settle(name)
}
