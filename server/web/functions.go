package web

import (
	"cmp"
	"html/template"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// functions returns what templates call.
func (v *Viewer) functions() template.FuncMap {
	return template.FuncMap{
		"session":  func(x server.Session) string { return v.Base + thread.StreamOf(x).Path("") },
		"bare":     bare,
		"size":     page.Size,
		"ago":      func(t time.Time) string { return page.Ago(v.Now().Sub(t)) },
		"stamp":    page.Stamp,
		"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clock":    func(t time.Time) string { return t.UTC().Format("15:04") },
		"count":    page.Count,
		"tokens":   page.Tokens,
		"digits":   page.Digits,
		"cost":     page.Cost,
		"span":     page.Span,
		"duration": page.Duration,
		"percent":  func(part, whole int64) int64 { return min(max(page.Percent(part, whole), 0), 100) },
		"model":    modelName,
		"short":    func(s string, n int) string { return page.Short(s, n) },
		"firstOf":  cmp.Or[string],
		"add":      func(a, b int64) int64 { return a + b },
		"hitKind":  hitKind,
		"join":     func(list []string) string { return strings.Join(list, ", ") },
	}
}

// bare returns the address of a page's content without the page around it.
func bare(address string) string {
	if strings.Contains(address, "?") {
		return address + "&bare=1"
	}
	return address + "?bare=1"
}

// modelName returns a model's name without the common prefix and the date.
func modelName(s string) string {
	s = strings.TrimPrefix(s, "claude-")
	if i := strings.LastIndexByte(s, '-'); i > 0 && len(s)-i == 9 && strings.Trim(s[i+1:], "0123456789") == "" {
		s = s[:i]
	}
	return s
}

// hitKind returns what kind of line a search found, as people say it.
func hitKind(kind string) string {
	words := map[string]string{"answer": "response", "tool": "tool call", server.EditKind: "file changed",
		server.ReadKind: "file read", server.CommandKind: "command run"}
	return cmp.Or(words[kind], kind)
}
