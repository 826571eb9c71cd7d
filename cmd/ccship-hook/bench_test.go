package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkHook times whole hooks, from the start of the program to its end, and prints medians.
func BenchmarkHook(b *testing.B) {
	program := released(b)
	open, hold, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer open.Close()
	defer hold.Close()
	for _, c := range []struct {
		name   string
		socket string
		stdin  func() io.Reader
	}{
		{"up", answering(b, telling), func() io.Reader { return strings.NewReader(newInput) }},
		{"up/nothing-to-say", answering(b, quiet), func() io.Reader { return strings.NewReader(newInput) }},
		{"up/20MB", answering(b, telling), func() io.Reader {
			return io.MultiReader(strings.NewReader(strings.TrimSuffix(newInput, "}")+`,"x":"`), io.LimitReader(endless{}, 20<<20), strings.NewReader(`"}`))
		}},
		{"down", filepath.Join(b.TempDir(), "none"), func() io.Reader { return strings.NewReader(newInput) }},
		{"frozen", answering(b, silence), func() io.Reader { return strings.NewReader(newInput) }},
		{"stdin-never-ends", answering(b, telling), func() io.Reader { return open }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []time.Duration
			home := b.TempDir()
			for b.Loop() {
				cmd := exec.Command(program, "post-tool-use")
				cmd.Env, cmd.Stdin, cmd.Stdout = []string{"HOME=" + home, "CCSHIP_SOCKET=" + c.socket}, c.stdin(), io.Discard
				began := time.Now()
				if err := cmd.Run(); err != nil && !strings.Contains(err.Error(), "broken pipe") { // it does not wait for all of its input
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ms(times[len(times)/2]), "median-ms")
			b.ReportMetric(ms(times[len(times)-1]), "max-ms")
			fmt.Fprintf(os.Stderr, "%s: median %.1f ms, longest %.1f ms of %d\n", b.Name(), ms(times[len(times)/2]), ms(times[len(times)-1]), len(times))
		})
	}
}
