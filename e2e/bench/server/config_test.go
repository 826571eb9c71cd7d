//go:build linux

package server_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/bench/corpus"
	"github.com/ccship/ccship/e2e/kit"
)

// settings say what is measured. Each comes from CCSHIP_BENCH_ and its name in capitals.
type settings struct {
	sizes   []float64 // GB of raw bytes
	stores  []string
	before  string // another ccship-server, measured beside
	folder  string // of transcripts to take instead of invented ones
	parts   []string
	out     string   // folder of the report
	many    int      // sessions to list
	daemons []int    // that write at once
	seconds int      // for how long they write
	pages   []int    // MB of the sessions whose pages are opened
	serve   []string // further options of this checkout's serve
}

func setting(name, otherwise string) string {
	if v := os.Getenv("CCSHIP_BENCH_" + name); v != "" {
		return v
	}
	return otherwise
}

func number(t *testing.T, name, otherwise string) int {
	t.Helper()
	n, err := strconv.Atoi(setting(name, otherwise))
	kit.Must(t, err)
	return n
}

func numbers(t *testing.T, name, otherwise string) (all []int) {
	t.Helper()
	for _, word := range strings.Fields(setting(name, otherwise)) {
		n, err := strconv.Atoi(word)
		kit.Must(t, err)
		all = append(all, n)
	}
	return all
}

// known are the words of a setting, which are some of those that are all.
func known(t *testing.T, name, all string) []string {
	t.Helper()
	words := strings.Fields(setting(name, all))
	for _, word := range words {
		if !slices.Contains(strings.Fields(all), word) {
			t.Fatalf("%s has %q; it takes %s", name, word, all)
		}
	}
	return words
}

func newSettings(t *testing.T) settings {
	t.Helper()
	root, err := kit.Root()
	kit.Must(t, err)
	s := settings{
		stores: known(t, "STORES", "SQLite PostgreSQL"),
		before: setting("BEFORE", ""), folder: setting("FOLDER", ""),
		parts: known(t, "PARTS", "shape import reads plans live keep many"),
		out:   setting("OUT", filepath.Join(root, "docs")),
		many:  number(t, "MANY", "130000"), daemons: numbers(t, "DAEMONS", "1000 100"),
		serve:   strings.Fields(setting("SERVE", "")),
		seconds: number(t, "SECONDS", "30"), pages: numbers(t, "PAGES", "5 100"),
	}
	for _, word := range strings.Fields(setting("SIZES", "0.1 1")) {
		size, err := strconv.ParseFloat(word, 64)
		kit.Must(t, err)
		s.sizes = append(s.sizes, size)
	}
	kit.Must(t, os.MkdirAll(s.out, 0o755))
	return s
}

func (s settings) has(part string) bool { return slices.Contains(s.parts, part) }

// world is what all measurements share.
type world struct {
	settings
	source *corpus.Source
	now    string // the program of this checkout
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

// version is what a program calls itself.
func version(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), program, "version").Output()
	kit.Must(t, err)
	return strings.TrimSpace(string(out))
}

// say shows progress.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s\n", fmt.Sprintf(format, args...))
}
