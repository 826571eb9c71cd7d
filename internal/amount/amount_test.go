package amount

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 999: "999 B", 1000: "1.0 kB", 82_854: "83 kB", 82_854_982: "83 MB", 1_500_000_000: "1.5 GB",
	} {
		kit.Equal(t, fmt.Sprintf("%d bytes", n), Size(n), want)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "4096": 4096, "10b": 10, "64MiB": 64 << 20, "128MiB": 128 << 20, "2 gib": 2 << 30, "1.5KiB": 1536,
		"64kB": 64_000, "10MB": 10e6, "7B": 7, "3gb": 3e9, "1TB": 1e12, "1TiB": 1 << 40,
	} {
		got, err := ParseSize(text)
		kit.Check(t, err == nil && got == want, "%q is %d %v, want %d", text, got, err, want)
		if back, err := ParseSize(ExactSize(got)); err != nil || back != got {
			t.Errorf("%d is written %s", got, ExactSize(got))
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5", "NaN", "Inf", "1e30TiB", "5 parsecs", "9999999TiB", "99999999999GiB"} {
		got, err := ParseSize(text)
		kit.Check(t, err != nil, "%q is %d, want an error", text, got)
	}
}

// What is printed can be typed: the rounding alone is lost.
func TestSizesAreReadAgain(t *testing.T) {
	for _, n := range []int64{0, 1, 999, 1000, 1500, 82_854, 9_990_000, 1_234_567_890, 7e12, 3e15, 2e18} {
		got, err := ParseSize(Size(n))
		if err != nil || math.Abs(float64(got-n)) > 0.051*float64(n) {
			t.Errorf("%d is written %s, read %d %v", n, Size(n), got, err)
		}
	}
}

func TestCounts(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 48211: "48 211", 1234567: "1 234 567", -1234: "-1 234", -123: "-123"} {
		kit.Equal(t, fmt.Sprint("count ", n), Count(n), want)
	}
	kit.Equal(t, "Counted", Counted(1, "line", "lines")+", "+Counted(1200, "line", "lines"), "1 line, 1 200 lines")
}

func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", time.Second: "1 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min", 119 * time.Minute: "1 h 59 min",
		3*time.Hour + 12*time.Minute: "3 h 12 min", 48 * time.Hour: "2 d 0 h", 50 * time.Hour: "2 d 2 h",
	} {
		kit.Equal(t, fmt.Sprint(d), Duration(d), want)
	}
	now := time.Unix(1_800_000_000, 0)
	kit.Equal(t, "Ago", Ago(now, now.Add(-time.Millisecond)), "just now")
	kit.Equal(t, "Ago", Ago(now, now.Add(-3*time.Hour)), "3 h 0 min ago")
}

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "2w": 336 * time.Hour, "36h": 36 * time.Hour, "1s": time.Second} {
		kit.Gives(t, fmt.Sprintf("%q is", text), want)(ParseAge(text))
	}
	for _, text := range []string{"", "d", "0d", "-1d", "30", "1.5d", "30 d", "999999999w", "0s"} {
		got, err := ParseAge(text)
		kit.Check(t, err != nil, "%q is %v", text, got)
	}
}

// TestNearest: a slip of the fingers is understood, another word is not.
func TestNearest(t *testing.T) {
	known := []string{"prompt", "message", "reply", "compaction", "error"}
	for word, want := range map[string]string{
		"promt": "prompt", "rpompt": "prompt", "PROMPT": "prompt", "comp": "compaction", "eror": "error", "massage": "message",
		"banana": "", "x": "", "": "",
	} {
		kit.Equal(t, word, Nearest(word, known), want)
	}
}
