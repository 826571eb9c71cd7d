package daemon

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// cleanupDefault is how many days Claude Code keeps a transcript when nobody set cleanupPeriodDays.
const cleanupDefault = 30

// CleanupDays is how many days after its last change Claude Code deletes a transcript, for the settings in its folder
// (~/.claude): an administrator's setting, else the least that the user's say, else the default. source is the file that
// says so; "" is the default. A file that cannot be understood counts as one that says nothing: Claude Code then deletes
// nothing, and what is told of its plans errs on the safe side.
func CleanupDays(configDir string) (days int, source string) {
	return cleanupDays(SettingsFiles(configDir)...)
}

// SettingsFiles are the files with settings of Claude Code that hold wherever it is started: an administrator's, then
// those in its folder (~/.claude). They need not exist. The local ones hold for sessions in that folder's parent only,
// but such a session deletes the transcripts of all.
func SettingsFiles(configDir string) []string {
	return []string{managedSettings(), filepath.Join(configDir, "settings.local.json"), filepath.Join(configDir, "settings.json")}
}

// cleanupDays is what the first of the files says, which are an administrator's; else the least that the others say.
func cleanupDays(files ...string) (days int, source string) {
	days = cleanupDefault
	for i, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var settings struct {
			Days *float64 `json:"cleanupPeriodDays"`
		}
		if json.Unmarshal(text, &settings) != nil || settings.Days == nil || *settings.Days < 0 || *settings.Days >= 1e6 {
			continue
		}
		if said := int(*settings.Days); source == "" || said < days {
			days, source = said, path
		}
		if i == 0 {
			break
		}
	}
	return days, source
}

// managedSettings is where an administrator's settings for Claude Code lie.
func managedSettings() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

// Doom is what lies in the folders of projects, and what of it Claude Code is about to delete.
type Doom struct {
	Sessions int   // main transcripts
	Bytes    int64 // of them and of their agents' transcripts
	Doomed   int   // main transcripts that will be deleted within the time asked for, or could be already
	// Next is when the first of them may go; zero when there is none. Claude Code deletes when a session starts.
	Next  time.Time
	First string // its path
	Ahead int    // transcripts that were changed later than a minute from now, by this machine's clock
}

// Doomed looks through the folders of projects for transcripts that Claude Code will delete within so long from now, by
// the settings beside each folder. Only names, sizes and times are looked at. A folder that does not exist is empty; an
// error names the first that cannot be read, and the rest is counted all the same.
func Doomed(roots []string, within time.Duration, now time.Time) (Doom, error) {
	var d Doom
	var first error
	for _, root := range roots {
		days, _ := CleanupDays(filepath.Dir(root))
		limit := now.Add(within).AddDate(0, 0, -days)
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real // the walk follows no link, not even this one
		}
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil {
				err = d.count(root, path, e, doomRule{days, limit, now})
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) && first == nil {
				first = err
			}
			return nil // what cannot be read is no reason not to count the rest
		})
		if err != nil && first == nil {
			first = err
		}
	}
	return d, first
}

// doomRule says which transcripts are deleted: those not changed after limit, so many days after that change.
type doomRule struct {
	days       int
	limit, now time.Time
}

// count adds one file.
func (d *Doom) count(root, path string, e fs.DirEntry, rule doomRule) error {
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
	d.Bytes += info.Size()
	if agent {
		return nil
	}
	d.Sessions++
	if info.ModTime().After(rule.now.Add(time.Minute)) {
		d.Ahead++
	}
	if info.ModTime().After(rule.limit) {
		return nil
	}
	d.Doomed++
	if end := info.ModTime().AddDate(0, 0, rule.days); d.Next.IsZero() || end.Before(d.Next) {
		d.Next, d.First = end, path
	}
	return nil
}
