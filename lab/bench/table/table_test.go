package table_test

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/table"
)

// TestPrint: a row for each figure with the median of its rounds and their ends, and a dash where nobody measured.
func TestPrint(t *testing.T) {
	one := &table.Table{Title: "Import", Text: "All of it."}
	for _, v := range []float64{2, 1, 4} {
		one.Add("we", "CPU", "s", v).Target = "≤ 3"
	}
	one.Add("they", "lost", "", 1)
	one.Note("not installed: Vector")
	one.Note("not installed: Vector")
	var b strings.Builder
	one.Print(&b)
	want := "\n## Import\n\nAll of it.\n\n| | we | they | wanted |\n|---|---|---|---|\n" +
		"| CPU | 2 s [1–4] | – | ≤ 3 |\n| lost | – | 1 |  |\n\nnot installed: Vector\n"
	kit.Equal(t, "got", b.String(), want)
}
