// Package amount writes sizes, counts and times for people, reads sizes, and finds the word that a mistyped one
// means. What Size and ExactSize write, ParseSize reads.
package amount

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Size returns a number of bytes, rounded, in powers of 1000: "999 B", "1.5 kB", "83 MB".
func Size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// ExactSize returns a number of bytes without rounding, in the largest power of 1024 that divides it: "64MiB", "1500".
func ExactSize(n int64) string {
	for _, u := range sizeUnits()[:4] {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// sizeUnits returns the units that ParseSize reads, in any case. ExactSize tries the first four in this order.
func sizeUnits() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"EB", 1e18}, {"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
	}
}

// ParseSize reads a whole number of bytes, 0 or more: "4096", "64MiB", "1.5 GB". Units may be in any case.
func ParseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for _, u := range sizeUnits() {
		if len(text) > len(u.name) && strings.EqualFold(text[len(text)-len(u.name):], u.name) {
			number, unit = strings.TrimSpace(text[:len(text)-len(u.name)]), u.bytes
			break
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if f *= float64(unit); err != nil || f < 0 || f >= math.MaxInt64 || f != math.Trunc(f) {
		return 0, fmt.Errorf("%q is not a size such as 512MiB or 2GiB", text)
	}
	return int64(f), nil
}

// Count groups digits by three.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// LineNumber returns the number of a line as people count, from 1: as editors and the viewer do. Protocols and JSON
// count from 0.
func LineNumber(index int64) int64 { return index + 1 }

// Counted returns a number and its noun.
func Counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Duration returns a span in at most two units. A negative one is 0.
func Duration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// Ago returns how long before now t was.
func Ago(now, t time.Time) string {
	if now.Sub(t) < time.Second {
		return "just now"
	}
	return Duration(now.Sub(t)) + " ago"
}

// ParseAge reads a length of time above 0: "30d", "2w", "36h", "90m".
func ParseAge(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	unit := map[string]time.Duration{"d": day, "w": 7 * day}[text[max(0, len(text)-1):]]
	var d time.Duration
	var err error
	if unit == 0 {
		d, err = time.ParseDuration(text)
	} else {
		var n int64
		n, err = strconv.ParseInt(text[:len(text)-1], 10, 32)
		if n > int64(100*365*day/unit) {
			n = 0
		}
		d = time.Duration(n) * unit
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not an age such as 30d, 12w or 36h", text)
	}
	return d, nil
}
