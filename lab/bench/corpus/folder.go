package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Folder makes the plan's sessions of a folder's transcripts (*.jsonl, at any depth), each once, whatever the plan's
// size is.
func (p Plan) Folder(dir string) (all []Session, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".jsonl" {
			return err
		}
		text, err := os.ReadFile(name)
		if len(bytes.TrimSpace(text)) == 0 {
			return err
		}
		s := Session{given: text, Owner: len(all) % p.OwnerCount()}
		s.ID = fmt.Sprintf("00000000-%04x-4000-8000-%012x", len(all), p.Seed)
		s.Cwd, s.Project = fmt.Sprintf("/home/user%d/work", s.Owner), fmt.Sprintf("%08x", s.Owner)
		s.Machine, s.Host = fmt.Sprintf("m%06x", s.Owner), fmt.Sprintf("host-%d", s.Owner)
		s.Path, s.Bytes = fmt.Sprintf("-folder-%d/%s.jsonl", s.Owner, s.ID), int64(len(text))
		all = append(all, s)
		return err
	})
	if err == nil && len(all) == 0 {
		err = errors.New("it has none")
	}
	if err != nil {
		return nil, fmt.Errorf("transcripts in %s: %w", dir, err)
	}
	return all, nil
}

// With is a session that has these lines instead of its own.
func (s Session) With(lines []string) Session {
	s.given, s.Rewound = []byte(strings.Join(lines, "\n")+"\n"), false
	return s
}

// Write writes the first generation of sessions as files below dir, and returns how many lines and bytes they have.
// They are dated over the last three months: a history is older than today.
func Write(dir string, all []Session, src *Source) (lines, bytes int64, err error) {
	for i, s := range all {
		path, first := filepath.Join(dir, s.Path), s.Chunks(src)[0].Lines
		text := strings.Join(first, "\n") + "\n"
		old := time.Now().Add(-90 * 24 * time.Hour / time.Duration(len(all)+1) * time.Duration(len(all)-i+1))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600),
			os.Chtimes(path, old, old))
		if err != nil {
			return 0, 0, fmt.Errorf("write %s: %w", s.ID, err)
		}
		lines, bytes = lines+int64(len(first)), bytes+int64(len(text))
	}
	return lines, bytes, nil
}
