package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/bench/report"
)

func run(size float64, before bool, ms float64) *report.Run {
	r := &report.Run{Store: "SQLite", Size: size, Before: before}
	r.Add("Reads", "list", ms, "ms")
	r.Aim("≤ 300 ms")
	return r
}

// TestTables: sizes stand beside each other, the version before first, and the largest two are compared.
func TestTables(t *testing.T) {
	r := &report.Report{Machine: map[string]string{"processors": "2"}}
	for _, one := range []*report.Run{run(10, false, 3), run(1, false, 2), run(1, true, 9.876), run(1, false, 2.5)} {
		title := "a plan"
		if one.Before {
			title = "an old plan"
		}
		one.Texts = []report.Text{{Title: title, Body: "Seq Scan"}}
		r.Put(one)
	}
	got := r.Markdown("Reads")
	for _, want := range []string{
		"- processors: 2\n", "### Reads\n\nSQLite\n\n",
		"| | 1 GB, before | 1 GB | 10 GB | 10 ÷ 1 GB | target |\n|---|---|---|---|---|---|\n",
		"| list | 9.88 ms | 2.50 ms | 3 ms | 1.20 | ≤ 300 ms |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Count(got, ": a plan</summary>\n\n```\nSeq Scan\n```\n") != 2 || strings.Contains(got, "an old plan") {
		t.Errorf("plans are missing, or old ones are shown, in\n%s", got)
	}
	if strings.Contains(r.Markdown(), "÷") {
		t.Error("a group is compared that was not asked for")
	}
}

// TestPutKeepsOtherGroups: measuring one part again loses nothing of the others.
func TestPutKeepsOtherGroups(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	r, err := report.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	first := run(1, false, 2)
	first.Add("Import", "CPU", 50, "s")
	r.Put(first)
	r.Put(run(1, false, 7))
	if err := r.Save(file); err != nil {
		t.Fatal(err)
	}
	if r, err = report.Load(file); err != nil {
		t.Fatal(err)
	}
	got := r.Markdown()
	if len(r.Runs) != 1 || !strings.Contains(got, "| CPU | 50 s |") || !strings.Contains(got, "| list | 7 ms |") {
		t.Errorf("%d runs:\n%s", len(r.Runs), got)
	}
}

// TestInclude: what stands around the marks stays; a page without them gets them.
func TestInclude(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	for _, text := range []string{"one", "two"} {
		if err := report.Include(page, "Scale", "figures", text); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if want := "# Scale\n\n<!-- figures:begin -->\n\ntwo\n\n<!-- figures:end -->\n"; err != nil || string(got) != want {
		t.Errorf("page is %q, %v", got, err)
	}
	write("before\n" + string(got) + "after\n")
	if err := report.Include(page, "Scale", "figures", "three"); err != nil {
		t.Fatal(err)
	}
	got, err = os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(got), "before\n") || !strings.HasSuffix(string(got), "end -->\nafter\n") ||
		!strings.Contains(string(got), "three") {
		t.Errorf("page is %q, %v", got, err)
	}
	write("<!-- figures:end -->\n<!-- figures:begin -->\n")
	if err := report.Include(page, "Scale", "figures", "four"); err == nil {
		t.Error("marks in the wrong order are taken")
	}
}
