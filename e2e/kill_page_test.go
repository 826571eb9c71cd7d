//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tables "github.com/ccship/ccship/e2e/bench/report"
)

const (
	// killOutEnv is the folder into which each kind of kills writes what it came to; "": nothing is written.
	killOutEnv = "CCSHIP_KILL_OUT"
	// killMergeEnv has TestKillPage take in what is there.
	killMergeEnv = "CCSHIP_KILL_MERGE"

	killsFile = "../docs/kills.json"
	scalePage = "../docs/scale.md"
	killMark  = "kill"

	killsAsked = 20 // rounds of each
)

// keep writes down what kills came to.
func (k *killed) keep() error {
	dir := os.Getenv(killOutEnv)
	if dir == "" {
		return nil
	}
	text, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		return fmt.Errorf("keep what kills came to: %w", err)
	}
	name := strings.ReplaceAll(k.Killed+"-"+k.During+"-"+k.Store, " ", "-") + ".json"
	return os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o644)
}

// TestKillPage holds docs/scale.md to what kills came to, and that to zeros.
func TestKillPage(t *testing.T) {
	t.Parallel()
	all := loadKills(t)
	if os.Getenv(killMergeEnv) != "" {
		all = mergeKills(t, all)
		must(t, tables.Include(scalePage, "The server at scale", killMark, killTable(all)))
	}
	for _, row := range killRows() {
		for store := range strings.FieldsSeq(row.stores) {
			if !slices.ContainsFunc(all, killed{Killed: row.killed, During: row.during, Store: store}.same) {
				t.Errorf("%s, %s, %s is not in the table", row.killed, row.during, store)
			}
		}
	}
	for _, k := range all {
		if k.Rounds < killsAsked || k.faults() > 0 {
			t.Errorf("%+v: want %d rounds and zeros", k, killsAsked)
		}
	}
	page, err := os.ReadFile(scalePage)
	must(t, err)
	if !strings.Contains(string(page), killTable(all)) {
		t.Errorf("%s does not have what %s says: run make kill-page", scalePage, killsFile)
	}
}

func loadKills(t *testing.T) (all []killed) {
	t.Helper()
	text, err := os.ReadFile(killsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(t, err)
	must(t, json.Unmarshal(text, &all))
	return all
}

// mergeKills takes in what was recorded, each kind in place of what it came to before, in the order of the rows.
func mergeKills(t *testing.T, all []killed) (out []killed) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.Getenv(killOutEnv), "*.json"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var k killed
		must(t, json.Unmarshal(text, &k))
		at := slices.IndexFunc(all, k.same)
		switch {
		case k.Rounds < killsAsked && k.faults() == 0: // a short one proves less
		case at < 0:
			all = append(all, k)
		default:
			all[at] = k
		}
	}
	for _, row := range killRows() {
		for store := range strings.FieldsSeq(row.stores) {
			is := killed{Killed: row.killed, During: row.during, Store: store}
			if i := slices.IndexFunc(all, is.same); i >= 0 {
				all[i].Recovery = []float64{tenth(middle(all[i].Recovery)), tenth(slices.Max(all[i].Recovery))}
				out = append(out, all[i])
			}
		}
	}
	text, err := json.MarshalIndent(out, "", " ")
	must(t, err)
	must(t, os.WriteFile(killsFile, append(text, '\n'), 0o644))
	return out
}

func (k killed) same(o killed) bool {
	return k.Killed == o.Killed && k.During == o.During && k.Store == o.Store
}

func (k killed) faults() int { return k.Lost + k.Wrong + k.Verify }

func tenth(x float64) float64 { return float64(int(10*x+.5)) / 10 }

// middle is the median; of two, which is a median and a greatest one, the first.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

// killTable is the table of all kinds.
func killTable(all []killed) string {
	var b strings.Builder
	b.WriteString("| killed | during | store | rounds | sessions | lines | lost | wrong | faults found | done after, median (most) |\n" +
		"|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, k := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %d | %d | %d | %.1f s (%.1f s) |\n", k.Killed, k.During, k.Store, k.Rounds,
			k.Sessions, k.Lines, k.Lost, k.Wrong, k.Verify, middle(k.Recovery), slices.Max(k.Recovery))
	}
	return strings.TrimSpace(b.String())
}
