//go:build unix

package claude_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/lab/setting"
)

// BenchmarkClaudeTurn times the same turn with and without ccship running, in pairs whose order alternates (A B B A),
// so that what drifts with time weighs on both alike. One iteration is one pair: -benchtime=40x measures 40.
//
// "process" is a whole `claude -p`, start to end; "turn" is a prompt to a Claude Code that runs already, from the
// prompt's being written to the result's being read, where less noise covers a difference. Nothing is asserted: the
// table says what was seen and how much of it the noise explains. With six tables, one says "beyond the noise" by
// chance alone in about every fourth run: measure that one again, with more pairs. The server runs on this machine
// throughout.
func BenchmarkClaudeTurn(b *testing.B) {
	setting.Asked(b)
	for _, version := range versions {
		b.Run(version, func(b *testing.B) {
			program := installed(b, version)
			b.Run("process", func(b *testing.B) { benchmarkProcess(b, program) })
			b.Run("turn", func(b *testing.B) { benchmarkTurn(b, program) })
		})
	}
}

// turnPrompt is what every turn says: a tool is called, so that a turn has a few lines to write.
const turnPrompt = `@Read {"file_path":"nothing.txt"}`

func benchmarkProcess(b *testing.B, program string) {
	w := newWorld(newHome(b, program, newStub(b)))
	w.prompt(turnPrompt) // the first start sets things up
	pairs(b, w, func() { w.prompt(turnPrompt) })
}

func benchmarkTurn(b *testing.B, program string) {
	w := newWorld(newHome(b, program, newStub(b)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := w.converse(ctx)
	for range 3 { // until its code is warm
		d.prompt(turnPrompt)
	}
	pairs(b, w, func() { d.prompt(turnPrompt) })
	d.end()
	w.start()
	w.verify() // it was really shipped
	w.daemon.MustStop(w.t)
}

// rest is how long everything is left alone before a turn, so that what came before it is no part of it.
const rest = 250 * time.Millisecond

// pairs times turn with ccship and without, once each an iteration, and reports what it found. Before each turn the
// same is done, a start of ccship included: else the turns that follow on a start would pay for it.
func pairs(b *testing.B, w *world, turn func()) {
	var p paired
	for b.Loop() {
		first := len(p.with)%2 == 1
		for _, with := range []bool{first, !first} {
			w.start()
			w.sync() // it has nothing left to do but the turn to come
			if !with {
				w.daemon.MustStop(w.t)
			}
			<-time.After(rest)
			start := time.Now()
			turn()
			took := time.Since(start)
			if with {
				p.with = append(p.with, took)
				w.sync()
				w.daemon.MustStop(w.t)
			} else {
				p.without = append(p.without, took)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // starting and stopping ccship is in it
	b.ReportMetric(ms(median(p.without)), "without-ms")
	b.ReportMetric(ms(median(p.with)), "with-ms")
	b.ReportMetric(ms(median(p.differences())), "diff-ms")
	b.ReportMetric(ms(p.noise()), "noise-ms")
	fmt.Fprintf(os.Stderr, "%s\n%s", b.Name(), p.table())
}

// paired is times of the same thing under two conditions; index i of both is one pair. A pair stands in the order
// without, with when its index is even, and the other way round when it is odd.
type paired struct {
	with, without []time.Duration
	what          string // that is compared; "" is ccship
}

// differences is with minus without, pair by pair.
func (p paired) differences() []time.Duration {
	d := make([]time.Duration, len(p.with))
	for i := range d {
		d[i] = p.with[i] - p.without[i]
	}
	return d
}

// noise is how far apart two medians of so many pairs lie by chance alone: 95 % of the time less. It comes from the
// order statistics of the differences and supposes nothing about their distribution.
func (p paired) noise() time.Duration {
	low, high := interval(p.differences())
	return (high - low) / 2
}

// interval is the 95 % confidence interval of the median, by the sign test; the whole range below six values.
func interval(values []time.Duration) (low, high time.Duration) {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n == 0 {
		return 0, 0
	}
	rank, tail, chance := 0, 0.0, math.Pow(0.5, float64(n)) // chance: of exactly rank heads in n tosses
	for {
		tail += chance
		if tail > 0.025 {
			break
		}
		chance *= float64(n-rank) / float64(rank+1)
		rank++
	}
	rank = max(rank, 1)
	return v[rank-1], v[n-rank]
}

// table is the figures for people, in milliseconds.
func (p paired) table() string {
	d := p.differences()
	what := cmp.Or(p.what, "ccship")
	low, high := interval(d)
	var t strings.Builder
	fmt.Fprintf(&t, "  %-22s %9s %9s %9s   (%d pairs, ms)\n", "", "median", "IQR", "MAD", len(d))
	for _, row := range []struct {
		name   string
		values []time.Duration
	}{{"without " + what, p.without}, {"with " + what, p.with}, {"difference in a pair", d}} {
		fmt.Fprintf(&t, "  %-22s %9.2f %9.2f %9.2f\n", row.name, ms(median(row.values)), ms(spread(row.values)), ms(deviation(row.values)))
	}
	verdict := "within the noise"
	if low > 0 || high < 0 {
		verdict = "beyond the noise"
	}
	fmt.Fprintf(&t, "  the median difference is %+.2f ms, 95 %% interval %+.2f to %+.2f: %s\n", ms(median(d)), ms(low), ms(high), verdict)
	if same := p.neighbours(); len(same) > 0 {
		fmt.Fprintf(&t, "  two turns of one kind, one after the other, differ by %.2f ms (median of %d)\n", ms(median(same)), len(same))
	}
	return t.String()
}

// neighbours is the distance of the two turns in the middle of A B B A, which are of one kind: what a difference
// without a cause looks like.
func (p paired) neighbours() []time.Duration {
	var out []time.Duration
	for i := 0; i+1 < len(p.with); i++ {
		side := p.with // an even pair ends with ccship, and the next begins with it
		if i%2 == 1 {
			side = p.without
		}
		out = append(out, (side[i+1] - side[i]).Abs())
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile is the value at a part of the way through the sorted values, interpolated; 0 of none.
func quantile(values []time.Duration, q float64) time.Duration {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 == len(v) {
		return v[i]
	}
	return v[i] + time.Duration((at-float64(i))*float64(v[i+1]-v[i]))
}

func median(values []time.Duration) time.Duration { return quantile(values, 0.5) }

// spread is the interquartile range.
func spread(values []time.Duration) time.Duration {
	return quantile(values, 0.75) - quantile(values, 0.25)
}

// deviation is the median absolute deviation from the median.
func deviation(values []time.Duration) time.Duration {
	m := median(values)
	distances := make([]time.Duration, len(values))
	for i, v := range values {
		distances[i] = (v - m).Abs()
	}
	return median(distances)
}
