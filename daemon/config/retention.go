package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// cleanupDefault is how many days Claude Code keeps a transcript if cleanupPeriodDays is not set.
const cleanupDefault = 30

// CleanupDays returns how many days after its last change Claude Code deletes a transcript, for the settings that it
// reads with its folder (~/.claude): an administrator's setting, else the smallest of all others, else the default.
// source is the file with that setting; "" is the default. A file that cannot be parsed counts as one without the
// setting: Claude Code then deletes nothing, so the answer errs on the safe side. It does not read what only the system
// keeps: managed preferences of macOS and the registry of Windows.
func CleanupDays(configDir string) (days int, source string) {
	return cleanupDays(administrators(configDir), append(users(configDir), ofProjects(configDir)...))
}

// SettingsFiles are Claude Code's settings files that apply wherever it is started: the administrator's, then those in
// its folder (~/.claude). They need not exist.
func SettingsFiles(configDir string) []string {
	return append(slices.Concat(administrators(configDir)...), users(configDir)...)
}

// users returns the settings files in Claude Code's folder. The local one applies to sessions in that folder's parent
// only, but such a session deletes everybody's transcripts.
func users(configDir string) []string {
	return []string{filepath.Join(configDir, "settings.local.json"), filepath.Join(configDir, "settings.json")}
}

// ofProjects returns the settings files of the projects in which Claude Code was started: a session in one of them
// deletes everybody's transcripts. Claude Code keeps their list in its folder, or next to ~/.claude.
func ofProjects(configDir string) (files []string) {
	for _, path := range []string{filepath.Join(configDir, ".claude.json"), configDir + ".json"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var state struct {
			Projects map[string]json.RawMessage `json:"projects"`
		}
		_ = json.Unmarshal(text, &state) // of a damaged file nothing is known
		for _, dir := range slices.Sorted(maps.Keys(state.Projects)) {
			own := filepath.Join(dir, ".claude")
			files = append(files, filepath.Join(own, "settings.local.json"), filepath.Join(own, "settings.json"))
		}
	}
	return files
}

// administrators returns the sources of an administrator's settings, the first that has any counts: what Claude Code
// keeps of its service's, then the files of this machine. Of several files in one source the last that has a setting
// counts.
func administrators(configDir string) [][]string {
	return [][]string{{filepath.Join(configDir, "remote-settings.json")}, withDropIns(managedSettings())}
}

// withDropIns returns a settings file and those in the folder next to it, in the order in which they are read.
func withDropIns(base string) []string {
	dir := strings.TrimSuffix(base, ".json") + ".d"
	entries, _ := os.ReadDir(dir) // sorted by name; it need not exist
	files := []string{base}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".json") && name[0] != '.' {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files
}

// cleanupDays returns the last setting of the first administrator's source that has one; else the smallest of the
// others.
func cleanupDays(managed [][]string, others []string) (days int, source string) {
	for _, files := range managed {
		for _, path := range files {
			if n, ok := daysIn(path); ok {
				days, source = n, path
			}
		}
		if source != "" {
			return days, source
		}
	}
	days = cleanupDefault
	for _, path := range others {
		if n, ok := daysIn(path); ok && (source == "" || n < days) {
			days, source = n, path
		}
	}
	return days, source
}

// daysIn reads the setting of one file.
func daysIn(path string) (days int, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	var settings struct {
		Days *float64 `json:"cleanupPeriodDays"`
	}
	if json.Unmarshal(text, &settings) != nil || settings.Days == nil || *settings.Days < 0 || *settings.Days >= 1e6 {
		return 0, false
	}
	return int(*settings.Days), true
}

// managedSettings returns the path of the administrator's settings for Claude Code.
func managedSettings() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

// Retention counts the transcripts in the projects folders, and those of them that Claude Code is about to delete.
type Retention struct {
	Sessions int   // main transcripts
	Bytes    int64 // of them and of their agents' transcripts
	Expiring int   // main transcripts that will be deleted within the time asked for, or are overdue
	// FirstExpiry is when the first of them expires; zero when none does. Claude Code deletes when a session starts.
	FirstExpiry time.Time
	FirstPath   string // of the transcript that expires first
	Future      int    // transcripts with a change more than a minute in the future, by this machine's clock
}

// Expiring counts the transcripts below the projects folders that Claude Code will delete within the given time, by the
// settings next to each folder. It reads only names, sizes and times. A folder that does not exist is empty. The error
// is about the first folder that cannot be read; everything else is counted all the same.
func Expiring(roots []string, within time.Duration, now time.Time) (Retention, error) {
	var r Retention
	var first error
	for _, root := range roots {
		days, _ := CleanupDays(filepath.Dir(root))
		limit := now.Add(within).AddDate(0, 0, -days)
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real // WalkDir follows no link, not even this one
		}
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil {
				err = r.count(root, path, e, expiryRule{days, limit, now})
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) && first == nil {
				first = err
			}
			return nil // the rest is counted all the same
		})
		if err != nil && first == nil {
			first = err
		}
	}
	return r, first
}

// expiryRule says which transcripts are deleted: those not changed after limit, that many days after their last change.
type expiryRule struct {
	days       int
	limit, now time.Time
}

// count adds one file.
func (r *Retention) count(root, path string, e fs.DirEntry, rule expiryRule) error {
	name := e.Name()
	if !e.Type().IsRegular() || !strings.HasSuffix(name, ".jsonl") || strings.Contains(name, ".compact.tmp.") {
		return nil
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	depth := strings.Count(rel, string(filepath.Separator))
	agent := strings.HasPrefix(name, "agent-")
	if depth == 0 || depth > 1 && !agent {
		return nil // not a transcript
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return nil
	}
	r.Bytes += info.Size()
	if agent {
		return nil
	}
	r.Sessions++
	if info.ModTime().After(rule.now.Add(time.Minute)) {
		r.Future++
	}
	if info.ModTime().After(rule.limit) {
		return nil
	}
	r.Expiring++
	if end := info.ModTime().AddDate(0, 0, rule.days); r.FirstExpiry.IsZero() || end.Before(r.FirstExpiry) {
		r.FirstExpiry, r.FirstPath = end, path
	}
	return nil
}
