package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/ccship/ccship/internal/sys"
)

// logFile is a log that keeps itself small: at its limit it becomes path.1, and a new file begins. Mode 0600. It also
// gets the output of a crash. Safe for concurrent use.
type logFile struct {
	path string
	most int64 // bytes

	mu   sync.Mutex
	file *os.File // guarded by mu
	size int64    // guarded by mu
}

// openLogFile appends to the log at path. It creates a missing folder with mode 0700.
func openLogFile(path string, most int64) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &logFile{path: path, most: most}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// open is called with mu held, or before anyone knows l.
func (l *logFile) open() error {
	f, err := sys.OpenOwn(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = debug.SetCrashOutput(f, debug.CrashOptions{})
	}
	if err != nil {
		return fmt.Errorf("open log: %w", errors.Join(err, f.Close()))
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends p to one file. A log that cannot be renamed keeps growing: its lines matter more than its size.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > l.most {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// turn begins a new file, unless the old one cannot be renamed. It is called with mu held.
func (l *logFile) turn() error {
	old := l.file
	if runtime.GOOS == "windows" { // where an open file cannot be renamed
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{}) // it has the file open, too
		_ = old.Close()                                     // everything in it was written
		_ = os.Rename(l.path, l.path+".1")
		return l.open()
	}
	if err := os.Rename(l.path, l.path+".1"); err == nil && l.open() == nil {
		_ = old.Close()
	}
	return nil
}

// Close ends the log. Crashes go to standard error only from then on.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(debug.SetCrashOutput(nil, debug.CrashOptions{}), l.file.Close())
}
