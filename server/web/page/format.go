package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/ccship/ccship/transcript"
)

// Stamp is a moment in UTC, to the second.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Size is a number of bytes, as the command line has it: 82 kB.
func Size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// Count is a number with its noun, in the plural unless it is 1.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Digits(n) + " " + noun + "s"
}

// Digits is a number with thin spaces between its thousands.
func Digits(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// Tokens is a number of tokens in at most three digits: 1.7k, 174k.
func Tokens(n int64) string {
	switch f := float64(n); {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 10_000:
		return fmt.Sprintf("%.1fk", f/1e3)
	case n < 999_500:
		return fmt.Sprintf("%.0fk", f/1e3)
	case n < 9_950_000:
		return fmt.Sprintf("%.1fM", f/1e6)
	case n < 999_500_000:
		return fmt.Sprintf("%.0fM", f/1e6)
	default:
		return fmt.Sprintf("%.1fG", f/1e9)
	}
}

// Cost is what tokens cost; "" when no price is known, with a + when some are not.
func Cost(c transcript.Cost) string {
	if !c.Known() {
		return ""
	}
	more := ""
	if c.Unpriced > 0 {
		more = "+"
	}
	return Dollars(c.USD) + more
}

// Dollars is an amount in US dollars; less than a cent is not rounded to 0.
func Dollars(f float64) string {
	switch {
	case f == 0:
		return "$0"
	case f < 0.01:
		return "<1¢"
	case f < 1000:
		return fmt.Sprintf("$%.2f", f)
	}
	return "$" + Digits(int64(f+.5))
}

// Ago is how long ago something was.
func Ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h ago"
	case d < 60*24*time.Hour:
		return strconv.Itoa(int(d/(24*time.Hour))) + " days ago"
	}
	return Count(int64(d/(30*24*time.Hour)), "month") + " ago"
}

// Span is how long something took; "" when that is not known.
func Span(from, to time.Time) string {
	if from.IsZero() || !to.After(from) {
		return ""
	}
	return Duration(to.Sub(from))
}

// Duration is how long something took, in one or two units.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return Count(int64(d/(24*time.Hour)), "day")
}

// Short cuts s to n characters.
func Short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return strings.TrimRight(string(r[:n-1]), " ") + "…"
}

// ShortPath cuts a path to about n characters. Its end stays: the name of the file, and folders as there is space.
func ShortPath(path string, n int) string {
	if utf8.RuneCountInString(path) <= n {
		return path
	}
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) == 0 {
		return Short(path, n)
	}
	end := Short(parts[len(parts)-1], n)
	for i := len(parts) - 2; i >= 0 && utf8.RuneCountInString(parts[i])+utf8.RuneCountInString(end)+3 <= n; i-- {
		end = parts[i] + "/" + end
	}
	return "…/" + end
}

// Cut is the first n bytes of s, up to a character's edge, and how many are left.
func Cut(s string, n int) (head string, rest int64) {
	if len(s) <= n {
		return s, 0
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], int64(len(s) - n)
}

// OneLine puts text on one line of at most n characters.
func OneLine(s string, n int) string {
	head, _ := Cut(s, 8*n)
	return Short(strings.Join(strings.Fields(head), " "), n)
}

// Percent is the share of n in of, rounded down; it can be more than 100. Of nothing it is 0.
func Percent(n, of int64) int64 {
	if of <= 0 {
		return 0
	}
	return 100 * n / of
}
