package league_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/bench/league"
)

// table has two contestants whose CPU differs by a factor, in three rounds.
func table(factor float64, lost float64) *league.Table {
	t := &league.Table{Machine: map[string]string{"processors": "2"}, Skipped: map[string]string{"Vector": "not installed"}}
	s := t.Begin("import", "Import", "All of it.")
	for _, v := range []float64{2, 1, 4} {
		s.Add("we", "CPU", "s", v*factor).Hold()
		s.Add("they", "CPU", "s", v)
		s.Add("we", "lost", "", lost).Hold()
	}
	return t
}

// TestTables: a row for each contestant, the ratio first, and why somebody is missing.
func TestTables(t *testing.T) {
	got := table(2, 0).Markdown("we", func(*league.Scenario) string { return "\nmore\n" })
	for _, want := range []string{
		"- not measured: Vector (not installed)\n", "### Import\n\nAll of it.\n\n| | CPU | lost |\n|---|---|---|\n",
		"| we | 4 s [2–8] | 0 |\n", "| they | 0.50× (2 s [1–4]) | – |\n", "\nmore\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestTurned: what belongs together stands in one cell.
func TestTurned(t *testing.T) {
	table := &league.Table{}
	s := table.Begin("probes", "Probes", "Counted.")
	s.Turned = true
	for _, column := range []string{"a: b: lost", "a: b: again", "c: lost"} {
		s.Add("we", column, "", float64(len(column)))
	}
	s.Add("they", "c: lost", "", 1)
	want := "| | we | they |\n|---|---|---|\n| a: b | 10 / 11 |  |\n| c | 7 | 1 |\n"
	if got := table.Markdown("we", func(*league.Scenario) string { return "" }); !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

// TestWorse: noise within the margin passes, and a change beyond it does not.
func TestWorse(t *testing.T) {
	then := table(2, 0)
	for factor, want := range map[float64]int{2: 0, 1: 0, 2.2: 0, 2.5: 1} {
		if got := league.Worse(table(factor, 0), then, "we", "they", 0.15); len(got) != want {
			t.Errorf("%g×: %q", factor, got)
		}
	}
	if got := league.Worse(table(2, 1), then, "we", "they", 0.15); len(got) != 1 || !strings.Contains(got[0], "lost: 1, was 0") {
		t.Errorf("a lost line: %q", got)
	}
}

// TestForms: each form of a measurement has its own place in the file, and a scenario measured again replaces the old one.
func TestForms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.json")
	for _, form := range []string{"full", "quick"} {
		if err := table(3, 0).Save(file, form); err != nil {
			t.Fatal(err)
		}
	}
	got, err := league.Load(file, "quick")
	if err != nil || len(got.Scenarios) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	got.Begin("import", "Import", "Again.").Add("we", "CPU", "s", 1)
	got.Begin("idle", "Idle", "Nothing.")
	got.Order([]string{"idle", "import"})
	if len(got.Scenarios) != 2 || got.Scenarios[0].Key != "idle" || len(got.Scenarios[1].Figures) != 1 {
		t.Errorf("%+v", got.Scenarios)
	}
}

// TestGrow: a line and a power are found again.
func TestGrow(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
	if f := league.Grow([]float64{1, 2, 3}, []float64{5, 7, 9}); !near(f.Base, 3) || !near(f.Each, 2) {
		t.Errorf("%+v", f)
	}
	if f := league.Grow([]float64{1, 10, 100}, []float64{2, 200, 20000}); !near(f.Power, 2) {
		t.Errorf("%+v", f)
	}
}

// TestResume: a run of some columns leaves the others, and mixes no figures of two runs in one column.
func TestResume(t *testing.T) {
	all := table(2, 0)
	all.Scenarios[0].Measured = "3 rounds"
	s := all.Resume("import", "Import", "Part of it.")
	s.Base, s.Measured = "we", "2 rounds"
	s.Add("we", "CPU", "s", 3)
	s.Add("we", "CPU", "s", 5)
	s.Skip("they", "not there today")
	if f := s.Figure("we", "CPU"); len(all.Scenarios) != 1 || len(f.Values) != 2 || s.Figure("they", "CPU") != nil {
		t.Errorf("%+v", s)
	}
	if f := s.Figure("we", "lost"); f == nil || len(f.Values) != 3 {
		t.Errorf("%+v", s.Figures)
	}
	if len(all.Only("import").Scenarios) != 1 || len(all.Only("idle").Scenarios) != 0 {
		t.Error("Only")
	}
	got := all.Markdown("nobody", func(*league.Scenario) string { return "" })
	for _, want := range []string{"\nNot measured: they (not there today).\n", "\nMeasured, we: 2 rounds.\n", "\nMeasured, we: 3 rounds.\n",
		"| | CPU | lost |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if s := (&league.Table{}).Resume("new", "", ""); len(s.Figures) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestResumeByRow: where rows are sizes of one contestant, a run of one size leaves the others, and says when each was
// measured.
func TestResumeByRow(t *testing.T) {
	all := &league.Table{}
	s := all.Begin("grow", "Growth", "With files.")
	s.Measured = "before"
	for _, size := range []string{"10 files", "100 files"} {
		s.Add(size, "RSS", "MiB", 1)
	}
	s = all.Resume("grow", "Growth", "With files.")
	s.ByRow, s.Measured = true, "later"
	s.Add("10 files", "RSS", "MiB", 2)
	want := "| 10 files | 2 MiB |\n| 100 files | 1 MiB |\n\nMeasured, 10 files: later.\n\nMeasured, 100 files: before.\n"
	if got := all.Markdown("", func(*league.Scenario) string { return "" }); !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}
