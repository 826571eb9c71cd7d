package library

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
)

// agents finds the transcripts of sessions' agents on disk. Old versions of Claude Code put them next to the sessions,
// and only their lines say whose they are: each folder is read once.
type agents map[string]map[string][]string // paths, by folder and session

// of returns the transcripts of a session's agents, in whatever folder below the session's, and next to it.
func (a agents) of(file File) (paths []string) {
	//nolint:errcheck // what cannot be listed has no transcripts
	filepath.WalkDir(filepath.Join(strings.TrimSuffix(file.Path, ".jsonl"), "subagents"),
		func(path string, e fs.DirEntry, err error) error {
			if err == nil && isAgent(e) {
				paths = append(paths, path)
			}
			return nil
		})
	folder := filepath.Dir(file.Path)
	if a[folder] == nil {
		a[folder] = map[string][]string{}
		entries, _ := os.ReadDir(folder)
		for _, e := range entries {
			if path := filepath.Join(folder, e.Name()); isAgent(e) {
				session := readSession(path)
				a[folder][session] = append(a[folder][session], path)
			}
		}
	}
	return append(paths, a[folder][file.Session]...)
}

func isAgent(e fs.DirEntry) bool {
	return e.Type().IsRegular() && strings.HasPrefix(e.Name(), "agent-") && strings.HasSuffix(e.Name(), ".jsonl")
}

// readSession returns the session that the first record of a transcript names; "" if that does not.
func readSession(path string) string {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, headBytes)).ReadBytes('\n') // of a cut one, what is whole is understood
	r := transcript.Parse(bytes.TrimSuffix(line, []byte("\n")))
	return r.SessionID
}
