package web

import (
	"fmt"
	"html/template"
	"net/url"
	"time"

	"github.com/ccship/ccship/server"
)

func functions() template.FuncMap {
	return template.FuncMap{
		"size":  size,
		"ago":   func(t time.Time) string { return ago(time.Since(t)) },
		"stamp": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"link":  link,
		"count": count,
	}
}

// link is the address of a session's page. The id is one path element, whatever is in it.
func link(x server.Session) string {
	return "/sessions/" + url.PathEscape(x.SessionID) + "?" + url.Values{"machine": {x.Machine}}.Encode()
}

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
	return fmt.Sprintf("%d %ss", n, noun)
}

// ago is how long something has been over, for people.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int64(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return count(int64(d/time.Hour), "hour") + " ago"
	}
	return count(int64(d/(24*time.Hour)), "day") + " ago"
}
