package kit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// AppendTranscript appends text to a file, as Claude Code does. Where this program's clock is not the disk's (make
// test-ahead) the file has the time of the clock, and a new one appears with it: the daemon must not see another one
// meanwhile.
func AppendTranscript(t testing.TB, path, text string) {
	t.Helper()
	at := path
	_, err := os.Stat(path)
	if now := time.Now(); errors.Is(err, os.ErrNotExist) && now.Sub(diskTime(t)).Abs() > time.Hour {
		at = filepath.Join(t.TempDir(), "new")
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	Must(t, err)
	_, err = f.WriteString(text)
	Must(t, errors.Join(err, f.Close()))
	if at == path {
		return
	}
	now := time.Now()
	Must(t, errors.Join(os.Chtimes(at, now, now), os.Rename(at, path)))
}

// diskTime is the time that the disk gives what is written now.
func diskTime(t testing.TB) time.Time {
	t.Helper()
	info, err := os.Stat(t.TempDir()) // a new folder
	Must(t, err)
	return info.ModTime()
}

// WriteFile writes a file that only its owner may read, and makes the folders above it.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	Must(t, os.WriteFile(path, []byte(text), 0o600))
}
