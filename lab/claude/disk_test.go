//go:build unix

package claude_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/ccship/ccship/e2e/kit"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// transcripts is every transcript on disk, by the name its stream must have. It looks for itself, and shares no code
// with what it checks.
func transcripts(t testing.TB, projects string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(projects, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() == 0 { // Claude Code 2.0 leaves an empty file per resume
			return err
		}
		rel, err := filepath.Rel(projects, path)
		if err != nil {
			return err
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		stem := strings.TrimSuffix(parts[len(parts)-1], ".jsonl")
		agent := strings.HasPrefix(stem, "agent-")
		var name string
		switch {
		case len(parts) == 2 && agent:
			name = firstSession(t, path) + "/" + stem
		case len(parts) == 2:
			name = stem
		case len(parts) > 3 && parts[2] == "subagents" && agent:
			name = parts[1] + "/" + stem
		default:
			return nil // the journal of a workflow
		}
		other, twice := found[name]
		kit.Require(t, !twice, "%s and %s have one name", path, other)
		found[name] = path
		return nil
	})
	must(t, err)
	return found
}

// firstSession is the first session id in a file's records: the parent of an agent whose folder does not say it.
func firstSession(t testing.TB, path string) string {
	t.Helper()
	for line := range bytes.Lines(read(t, path)) {
		var record struct {
			SessionID string `json:"sessionId"`
		}
		if json.Unmarshal(line, &record) == nil && record.SessionID != "" {
			return record.SessionID
		}
	}
	t.Fatalf("%s names no session", path)
	return ""
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	return kit.Try(os.ReadFile(path)).Must(t)
}

// mark is all by which a change of a file would show. A folder's time changes with every name that comes or goes.
type mark struct {
	Size  int64
	Time  int64
	Inode uint64
	Mode  fs.FileMode
}

// inventory is everything at or below some paths.
func inventory(t testing.TB, roots ...string) map[string]mark {
	t.Helper()
	all := map[string]mark{}
	for _, root := range roots {
		must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			all[path] = mark{info.Size(), info.ModTime().UnixNano(), info.Sys().(*syscall.Stat_t).Ino, info.Mode()}
			return nil
		}))
	}
	return all
}

// changes says what differs between two inventories.
func changes(before, after map[string]mark) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(after)) {
		switch was, there := before[path]; {
		case !there:
			out = append(out, "new: "+path)
		case was != after[path]:
			out = append(out, fmt.Sprintf("changed: %s: %+v, was %+v", path, after[path], was))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[path]; !there {
			out = append(out, "gone: "+path)
		}
	}
	return out
}

// firstDifference describes where two contents part.
func firstDifference(got, want []byte) string {
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	excerpt := func(b []byte) string { return fmt.Sprintf("%.60q", b[n:min(len(b), n+60)]) }
	return fmt.Sprintf("%d bytes, want %d; they part at byte %d (line %d): %s, want %s",
		len(got), len(want), n, bytes.Count(want[:n], []byte("\n")), excerpt(got), excerpt(want))
}

// openBelow is the files below a folder that a process has open now; none where the system does not show them.
func openBelow(pid int, dir string) (open []string) {
	fds := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, _ := os.ReadDir(fds)
	for _, e := range entries {
		if path, err := os.Readlink(fds + e.Name()); err == nil && strings.HasPrefix(path, dir) {
			open = append(open, path)
		}
	}
	return open
}
