//go:build ignore

// Command tested runs `go test -json` with its arguments and prints what `go test` prints, then what was skipped and why,
// and the ten slowest packages. Arguments before -- say what the caller left out. The exit code is that of `go test`.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// run is one `go test`.
type run struct {
	output  map[[2]string][]string // of a package's tests that run
	skipped map[string][]string    // tests by the reason
	slowest []result
	failed  []string
}

type result struct {
	seconds float64
	line    string // as `go test` prints it
}

func main() {
	left, args := []string(nil), os.Args[1:]
	if i := slices.Index(args, "--"); i >= 0 {
		left, args = args[:i], args[i+1:]
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		log.Fatal(err)
	}
	r := run{output: map[[2]string][]string{}, skipped: map[string][]string{}}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			r.take(e)
		} else {
			os.Stdout.Write(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	err = cmd.Wait()
	r.close(left)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		log.Fatal(err)
	}
}

// take prints packages when they end, and the whole output of tests that fail.
func (r *run) take(e event) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") { // began, waits, goes on
			r.output[key] = append(r.output[key], e.Output)
		}
	case "build-output":
		fmt.Print(e.Output)
	case "pass", "skip", "fail":
		lines := r.output[key]
		delete(r.output, key)
		switch {
		case e.Test == "":
			r.ended(e, lines)
		case e.Action == "fail":
			fmt.Print(strings.Join(lines, ""))
			r.failed = append(r.failed, fmt.Sprintf("--- FAIL: %s (%s)", e.Test, e.Package))
		case e.Action == "skip":
			why := reason(lines)
			r.skipped[why] = append(r.skipped[why], e.Package[strings.LastIndex(e.Package, "/")+1:]+"."+e.Test)
		}
	}
}

// ended prints what `go test` prints of a package: its line, and all output if it failed.
func (r *run) ended(e event, lines []string) {
	if e.Action == "fail" { // with what tests wrote that never ended
		for key, rest := range r.output {
			if key[0] == e.Package {
				fmt.Print(strings.Join(rest, ""))
				delete(r.output, key)
			}
		}
		fmt.Print(strings.Join(lines, ""))
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") {
			r.slowest = append(r.slowest, result{e.Elapsed, line})
		}
		if strings.HasPrefix(line, "ok  \t") {
			fmt.Print(line)
		}
	}
}

var place = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// reason returns the first line that a test logged before it was skipped.
func reason(lines []string) string {
	for _, line := range lines {
		if at := place.FindString(line); at != "" {
			return strings.TrimSpace(line[len(at):])
		}
	}
	return "no reason given"
}

func (r *run) close(left []string) {
	fmt.Printf("\nskipped, and why:\n")
	for _, w := range append(left, slices.Sorted(maps.Keys(r.skipped))...) {
		if tests := r.skipped[w]; len(tests) > 4 {
			w += fmt.Sprintf(" (%s and %d more)", strings.Join(tests[:3], ", "), len(tests)-3)
		} else if len(tests) > 0 {
			w += " (" + strings.Join(tests, ", ") + ")"
		}
		fmt.Println("  " + w)
	}
	slices.SortFunc(r.slowest, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Printf("\nthe slowest packages:\n")
	for _, p := range r.slowest[:min(10, len(r.slowest))] {
		fmt.Print(p.line)
	}
	if len(r.failed) > 0 {
		fmt.Printf("\n%s\n", strings.Join(r.failed, "\n"))
	}
}
