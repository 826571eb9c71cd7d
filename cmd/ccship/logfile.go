package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
)

// logFile is a log that keeps itself small: grown to its limit, it becomes path.1, and a new one begins. Mode 0600. What
// the program says when it crashes ends in it too. Safe for concurrent use.
type logFile struct {
	path string
	most int64 // bytes

	mu   sync.Mutex
	file *os.File // guarded by mu
	size int64    // guarded by mu
}

// openLogFile goes on with the log at path; its folder is made, mode 0700, when it is missing.
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
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
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

// Write appends p whole to one file. A log that cannot be set aside goes on to grow: lines are worth more than its size.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > l.most {
		old := l.file
		if err := os.Rename(l.path, l.path+".1"); err == nil && l.open() == nil {
			_ = old.Close() // everything in it was written
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// Close ends the log. Crashes are told on standard error alone again.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(debug.SetCrashOutput(nil, debug.CrashOptions{}), l.file.Close())
}
