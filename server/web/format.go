package web

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/markup"
)

func (v *Viewer) functions() template.FuncMap {
	return template.FuncMap{
		"url":      func(p string) string { return v.Base + p },
		"asset":    v.assetURL,
		"session":  func(x server.Session) string { return v.Base + streamOf(x).path("") },
		"size":     size,
		"ago":      func(t time.Time) string { return ago(v.now().Sub(t)) },
		"stamp":    stamp,
		"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clock":    func(t time.Time) string { return t.UTC().Format("15:04") },
		"count":    count,
		"tokens":   tokens,
		"digits":   digits,
		"cost":     cost,
		"span":     span,
		"duration": duration,
		"percent":  percent,
		"model":    modelName,
		"text":     markup.Text,
		"short":    func(s string, n int) string { return short(s, n) },
		"firstOf":  firstOf,
		"add":      func(a, b int64) int64 { return a + b },
		"markHits": markHits,
		"len64":    func(list []string) int64 { return int64(len(list)) },
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// count is a number with its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return digits(n) + " " + noun + "s"
}

// digits is a number with its thousands apart.
func digits(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// tokens is a number of tokens, three digits of it.
func tokens(n int64) string {
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

// cost is an amount of money; "" when nothing is known of it.
func cost(c derive.Cost) string {
	if !c.Known() {
		return ""
	}
	more := ""
	if c.Unpriced > 0 {
		more = "+"
	}
	return dollars(c.USD) + more
}

func dollars(f float64) string {
	switch {
	case f == 0:
		return "$0"
	case f < 0.01:
		return "<1¢"
	case f < 1000:
		return fmt.Sprintf("$%.2f", f)
	}
	return "$" + digits(int64(f+.5))
}

// ago is how long something has been over, for people.
func ago(d time.Duration) string {
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
	return count(int64(d/(30*24*time.Hour)), "month") + " ago"
}

// span is how long something took; "" when that is not known.
func span(from, to time.Time) string {
	if from.IsZero() || !to.After(from) {
		return ""
	}
	return duration(to.Sub(from))
}

func duration(d time.Duration) string {
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
	return count(int64(d/(24*time.Hour)), "day")
}

// percent is part of whole, 0 to 100.
func percent(part, whole int64) int64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return min(part*100/whole, 100)
}

// modelName is a model's name without what all of them have in common, and without the day it is of.
func modelName(s string) string {
	s = strings.TrimPrefix(s, "claude-")
	if i := strings.LastIndexByte(s, '-'); i > 0 && len(s)-i == 9 && strings.Trim(s[i+1:], "0123456789") == "" {
		s = s[:i]
	}
	return s
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// short cuts s to n characters.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return strings.TrimRight(string(r[:n-1]), " ") + "…"
}

// cut is the first n bytes of s, up to a character's edge, and how many are left.
func cut(s string, n int) (head string, rest int64) {
	if len(s) <= n {
		return s, 0
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], int64(len(s) - n)
}

// markHits puts what a search found between marks.
func markHits(snippet string) template.HTML {
	var b strings.Builder
	for snippet != "" {
		before, rest, found := strings.Cut(snippet, "\u0002")
		b.WriteString(string(markup.Text(strings.ReplaceAll(before, "\u0003", ""))))
		if !found {
			break
		}
		hit, after, _ := strings.Cut(rest, "\u0003")
		b.WriteString("<mark>" + string(markup.Text(strings.ReplaceAll(hit, "\u0002", ""))) + "</mark>")
		snippet = after
	}
	return template.HTML(b.String()) //nolint:gosec // escaped by Text
}
