package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/planted"
)

// TestGitleaks compares what the rules catch with what gitleaks catches, in texts and in lines of transcripts. gitleaks
// is a tool of its own, which takes a while to build.
func TestGitleaks(t *testing.T) {
	if !kit.HasSetting("gitleaks") {
		t.Skip("lab gitleaks runs it")
	}
	dir, m, r := t.TempDir(), masker(t), rand.New(rand.NewPCG(8, 9))
	caught := map[string]bool{} // by us, for every file
	for _, kind := range slices.Sorted(maps.Keys(planted.Kinds())) {
		text, secret := planted.Plant(r, planted.Kinds()[kind])
		for place, in := range map[string]string{"text": text, "line": `{"type":"user","message":{"content":` + quote("see\n"+text) + `}}`} {
			name := kind + "." + place
			kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(in), 0o600))
			out, _ := m.Line([]byte(in))
			caught[name] = !leaks(string(out), secret)
		}
	}
	theirs := gitleaks(t, dir)
	ours, more := 0, []string{}
	for name, ok := range caught {
		if ok {
			ours++
		} else if theirs[name] {
			more = append(more, name)
		}
	}
	t.Logf("of %d secrets we catch %d, gitleaks %d", len(caught), ours, len(theirs))
	kit.Check(t, len(more) == 0 && ours >= len(theirs), "gitleaks catches what we do not: %q", more)
}

// gitleaks names the files in which gitleaks finds something by its own rules.
func gitleaks(t *testing.T, dir string) map[string]bool {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	modfile := filepath.Join("..", "..", ".ci", "tools", "gitleaks", "go.mod")
	tool := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+modfile, "gitleaks", "dir", dir, "--no-banner",
		"--exit-code=0", "--report-format=json", "--report-path="+report)
	tool.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := tool.CombinedOutput(); err != nil {
		t.Skipf("gitleaks cannot be built or run: %v: %.200s", err, out)
	}
	text := kit.Try(os.ReadFile(report)).Must(t)
	var found []struct{ File string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(fmt.Errorf("read report: %w", err))
	}
	files := map[string]bool{}
	for _, f := range found {
		files[strings.TrimSpace(filepath.Base(f.File))] = true
	}
	return files
}
