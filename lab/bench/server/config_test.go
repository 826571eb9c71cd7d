//go:build linux

package server_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/e2e/kit/setting"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/table"
)

// settings say what is measured.
type settings struct {
	sizes   []float64 // GB of raw bytes
	stores  []string
	before  string   // another ccship-server, measured along with
	folder  string   // of transcripts to take instead of invented ones
	parts   []string // next to the import
	daemons []int    // that write at once
	seconds int      // for how long they write
	pages   []int    // MB of the sessions whose pages are opened
	serve   []string // further options of this checkout's serve
}

func newSettings(t *testing.T) settings {
	t.Helper()
	s := settings{stores: setting.Words("stores", "SQLite", "PostgreSQL"),
		before: setting.Text("before", ""), folder: setting.Text("folder", ""),
		parts:   setting.Words("parts", "reads", "live", "keep"),
		daemons: setting.Numbers("daemons", 1000, 100), seconds: 30, pages: []int{5, 100}, serve: setting.Words("serve")}
	sizes := "0.1,1"
	if setting.IsQuick() {
		sizes, s.daemons, s.seconds, s.pages = "0.02", []int{20}, 5, []int{2}
	}
	for word := range strings.SplitSeq(setting.Text("sizes", sizes), ",") {
		size, err := strconv.ParseFloat(word, 64)
		kit.Must(t, err)
		s.sizes = append(s.sizes, size)
	}
	return s
}

func (s settings) has(part string) bool { return slices.Contains(s.parts, part) }

// world is what all measurements share.
type world struct {
	settings
	source *corpus.Source
	now    string // the program of this checkout
	tables []*table.Table
}

// sessions are the transcripts of a size.
func (w *world) sessions(t *testing.T, size float64) (corpus.Plan, []corpus.Session) {
	t.Helper()
	plan := corpus.Plan{Seed: 1, Bytes: int64(size * 1e9)}
	if w.folder == "" {
		return plan, plan.Sessions()
	}
	all, err := plan.Folder(w.folder)
	kit.Must(t, err)
	return plan, all
}

// say shows progress.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s\n", fmt.Sprintf(format, args...))
}
