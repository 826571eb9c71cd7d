package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Size is a number of bytes: "999 B", "1.5 kB", "83 MB".
func Size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// Count groups digits by three.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Counted is a number and its noun.
func Counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Duration is a span in at most two units.
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

// Ago is how long before now t was.
func Ago(now, t time.Time) string {
	if now.Sub(t) < time.Second {
		return "just now"
	}
	return Duration(now.Sub(t)) + " ago"
}

// OneLine joins the lines of s, with one space between words.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Printable is s in one line, without control characters: text that others wrote must not steer the terminal.
func Printable(s string) string { return OneLine(Harmless(s)) }

// Harmless replaces the control characters of s, and bytes that are not UTF-8.
func Harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
