package project

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestDestination(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	const own, its = "https://own.example", "http://its.example:5000"
	named := Policy{Dir: dir, Enabled: true, ServerURL: its}
	tests := []struct {
		name    string
		policy  Policy
		own     string
		trusted []string
		want    string
		why     string // part of it, "" none
	}{
		{"nothing said", Policy{Enabled: true}, own, nil, own, ""},
		{"no server at all", Policy{Enabled: true}, "", nil, "", ""},
		{"opted out", Policy{Dir: dir, ServerURL: its}, own, []string{dir}, "", "opted out in " + dir},
		{"not trusted", named, own, nil, own, "trusted_projects"},
		{"not trusted, no other", named, "", nil, "", "no other server"},
		{"trusted", named, own, []string{"/x", dir}, its, ""},
		{"trusted, no other", named, "", []string{dir + "/"}, its, ""},
		{"folder above trusted", named, own, []string{filepath.Dir(dir)}, its, ""},
		{"like a trusted one", named, own, []string{dir[:len(dir)-1], dir + "q", dir + "/sub"}, own, "trusted_projects"},
		{"no folder is trusted by these", named, own, []string{"", ".", "shop", ".."}, own, "trusted_projects"},
		{"the same server", Policy{Dir: dir, Enabled: true, ServerURL: "HTTPS://OWN.example:443/"}, own, nil, own, ""},
		{"the same server's endpoint", Policy{Dir: dir, Enabled: true, ServerURL: own + "//api/conversations"}, own, []string{dir}, own, ""},
		{"another path", Policy{Dir: dir, Enabled: true, ServerURL: own + "/x"}, own, nil, own, "trusted_projects"},
		{"a hash, not trusted", Policy{Dir: dir, Enabled: true, ServerURL: own, ProjectHash: "h"}, own, nil, own, "project_hash"},
		{"a hash, trusted", Policy{Dir: dir, Enabled: true, ServerURL: own, ProjectHash: "h"}, own, []string{dir}, own, ""},
		{"notice passes", Policy{Dir: dir, Enabled: true, Advice: "n"}, own, nil, own, "n"},
		{"nowhere trusted", Policy{Enabled: true, ServerURL: its}, own, []string{"/", "", "."}, own, "trusted_projects"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := Destination(tt.policy, tt.own, tt.trusted)
			kit.Check(t, got == tt.want && strings.Contains(why, tt.why) && (why == "") == (tt.why == ""),
				"Destination = %q, %q; want %q, %q", got, why, tt.want, tt.why)
		})
	}
}

func TestLastSent(t *testing.T) {
	const flat = `{"src/index.js":{"hash":"a","size":1},"src/utils.js":{"hash":"b","size":2}}`
	note := func(s string) string { return `{"files":{"a.js":{"hash":"a","size":1}},"transcript":` + s + `}` }
	tests := []struct {
		name, text string
		line       int64
		ok         bool
	}{
		{"noted", note(`{"session_id":"s","last_sent_line":42,"last_sent_at":"2024-01-15T10:36:00.000Z"}`), 42, true},
		{"first line", note(`{"session_id":"s","last_sent_line":0}`), 0, true},
		{"other session", note(`{"session_id":"t","last_sent_line":42}`), 0, false},
		{"no line", note(`{"session_id":"s"}`), 0, false},
		{"line null", note(`{"session_id":"s","last_sent_line":null}`), 0, false},
		{"line of another kind", note(`{"session_id":"s","last_sent_line":"42"}`), 0, false},
		{"line below zero", note(`{"session_id":"s","last_sent_line":-1}`), 0, false},
		{"no fraction", note(`{"session_id":"s","last_sent_line":1.5}`), 0, false},
		{"null", note(`null`), 0, false},
		{"files only", `{"files":{}}`, 0, false},
		{"flat", flat, 0, false},
		{"flat with a file of that name", `{"transcript":{"hash":"a","size":1}}`, 0, false},
		{"flat with one nearly of that name", `{"Transcript":{"session_id":"s","last_sent_line":42}}`, 0, false},
		{"malformed", `{"transcript":{"session_id":"s","last_sent_line":4`, 0, false},
		{"empty", ``, 0, false},
		{"many files", `{"files":{"` + strings.Repeat("x", 2<<20) + `":1},"transcript":{"session_id":"s","last_sent_line":7}}`, 7, true},
		{"too large", note(`{"session_id":"s","last_sent_line":42}`) + strings.Repeat(" ", maxSnapshot), 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, ".codetracker/cache/last_snapshot.json", tt.text)
			line, ok := LastSent(dir, "s")
			kit.Check(t, line == tt.line && ok == tt.ok, "LastSent = %d, %t; want %d, %t", line, ok, tt.line, tt.ok)
		})
	}
	_, ok := LastSent(t.TempDir(), "s")
	kit.Check(t, !ok, "a note without a file")
	_, ok = LastSent("", "s")
	kit.Check(t, !ok, "a note without a project")
}

// TestLoopback tells servers on this machine from those that look like it.
func TestLoopback(t *testing.T) {
	for dest, want := range map[string]bool{
		"http://127.0.0.1:5000": true, "http://localhost:5000#/home/kim/shop": true, "http://[::1]:5000/x": true, "http://LOCALHOST.": true,
		"https://ccship.example.org": false, "http://127.0.0.1.example.org": false, "http://localhost.example.org": false,
		"http://user@127.0.0.1@example.org": false, "http://192.168.0.1": false, "": false, "%": false,
	} {
		got := Loopback(dest)
		kit.Check(t, got == want, "%q is on this machine: %v, want %v", dest, got, want)
	}
}
