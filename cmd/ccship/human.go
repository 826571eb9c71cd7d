package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// humanSize is bytes in powers of 1000 with one digit after the point.
func humanSize(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n), 0
	for f >= 999.95 && unit < 5 {
		f, unit = f/1000, unit+1
	}
	return fmt.Sprintf("%.1f %s", f, []string{"B", "kB", "MB", "GB", "TB", "PB"}[unit])
}

// humanCount groups digits by three.
func humanCount(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// counted is a number and its noun.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanCount(n) + " " + many
}

// humanDuration is a span in at most two units.
func humanDuration(d time.Duration) string {
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

// ago is how long before now t was.
func ago(now, t time.Time) string {
	if now.Sub(t) < time.Second {
		return "just now"
	}
	return humanDuration(now.Sub(t)) + " ago"
}

// pad fills s with spaces up to width columns.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-columns(s)))
}

// cut shortens s to width columns.
func cut(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	return fitting(s, max(0, width-1)) + "…"
}
