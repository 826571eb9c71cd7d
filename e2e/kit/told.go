package kit

import (
	"regexp"
	"strings"
)

// LastWords returns the line of a log in which a program that has ended says why.
func LastWords(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if said, ours := strings.CutPrefix(lines[i], "ccship: "); ours {
			return said
		}
	}
	for _, line := range lines { // the runtime's own words stand before its traces
		if strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}

// Headline returns the first line of what `ccship status` prints, without its mark and its process.
func Headline(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line, _, _ = strings.Cut(line, " (up ")
	_, said, found := strings.Cut(line, "ccship: ")
	if !found {
		return line
	}
	return said
}

var varying = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|\d{8}T[0-9.]+Z`), "…"},
	{regexp.MustCompile(`(since|at) \d{4}-\d\d-\d\d \d\d:\d\d`), "$1 …"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+(->127\.0\.0\.1:\d+)?`), "127.0.0.1"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "SESSION"},
	{regexp.MustCompile(`pid \d+`), "pid N"},
	{regexp.MustCompile(`\b\d+ (d|h|min)( \d+ (h|min|s))?\b`), "N $1"},
	{regexp.MustCompile(`\b\d+(\.\d+)?( ?[kMG]i?B| ms|ms| s|s)\b`), "N$2"},
	{regexp.MustCompile(`\b[1-9]\d* (entries|lines|transcripts|sessions|folders|failures|waiting)\b`), "N $1"},
	{regexp.MustCompile(`\b1 (entry|line|transcript|session|folder|failure)\b`), "N $1"},
	{regexp.MustCompile(`(page|transaction) (\d+|N)( to \d+)?`), "$1 N"},
	{regexp.MustCompile(`(to be:|identifies as|row) \d+`), "$1 N"},
	{regexp.MustCompile(`-work-\d`), "-work-N"},
	{regexp.MustCompile(`; (doctor: )?(a rewrite took [^;]* at …|\d+ more rewrites? took lines out)`), ""}, // by a test
	{regexp.MustCompile(`at byte \d+`), "at byte N"},
}

// Plain takes out of a text what differs from run to run.
func Plain(text string) string {
	for _, v := range varying {
		text = v.what.ReplaceAllString(text, v.with)
	}
	return text
}
