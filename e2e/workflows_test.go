//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestHouseWorkflows: what others wrote runs in workflows at one commit, and never sees the key that releases are
// signed with.
func TestHouseWorkflows(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	pinned := regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var w struct {
			Env  map[string]string
			Jobs map[string]struct {
				Uses  string
				Env   map[string]string
				Steps []map[string]any
			}
		}
		must(t, yaml.Unmarshal(text, &w))
		hasKey := func(v any) bool {
			b, err := yaml.Marshal(v)
			return err != nil || strings.Contains(string(b), "RELEASE_KEY")
		}
		for name, job := range w.Jobs {
			if job.Uses != "" || hasKey(w.Env) || hasKey(job.Env) {
				t.Errorf("%s, %s: runs another workflow, or all its steps have the key", file, name)
			}
			for _, step := range job.Steps {
				uses, is := step["uses"].(string)
				if is && (!pinned.MatchString(uses) || hasKey(step)) {
					t.Errorf("%s, %s: %s is at no commit, or has the key", file, name, uses)
				}
			}
		}
	}
}
