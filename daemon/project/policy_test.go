package project

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// write makes a file below dir, with the folders it needs, long settled.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	kit.WriteFile(t, path, text)
	age(t, path)
	return path
}

func age(t *testing.T, path string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	kit.Must(t, os.Chtimes(path, old, old))
}

func find(t *testing.T, cwd string) Policy {
	t.Helper()
	p, err := NewFinder().Find(cwd)
	kit.Require(t, err == nil, "Find(%s): %v", cwd, err)
	return p
}

func TestConfig(t *testing.T) {
	const cred = `{"api_key":"k","current_project_hash":"h"}`
	tests := []struct {
		name, config, credentials string // "" no such file
		want                      Policy
		notice                    string
	}{
		{"nothing", "", "", Policy{Enabled: true, MaxEntries: 100}, ""},
		{"empty object", `{}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 100}, ""},
		{"server", `{"server_url":"https://h.example/x"}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 100, ServerURL: "https://h.example/x"}, ""},
		{"opt-out", `{"conversation_tracking":{"enabled":false}}`, cred, Policy{Dir: "x", MaxEntries: 100, ServerURL: DefaultServerURL,
			HasCredentials: true, APIKey: "k", ProjectHash: "h"}, ""},
		{"no opt-out", `{"conversation_tracking":{"enabled":true,"max_entries_per_request":50}}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 50}, ""},
		{"nulls", `{"server_url":null,"conversation_tracking":{"enabled":null,"max_entries_per_request":null}}`, "",
			Policy{Dir: "x", Enabled: true, MaxEntries: 100}, ""},
		{"no tracking", `{"conversation_tracking":null,"version":"3.0"}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 100}, ""},
		{"byte order mark", "\xef\xbb\xbf" + `{"conversation_tracking":{"enabled":false}}`, "", Policy{Dir: "x", MaxEntries: 100}, ""},
		{"limit 0", `{"conversation_tracking":{"max_entries_per_request":0}}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 100}, ""},
		{"limit a fraction", `{"conversation_tracking":{"max_entries_per_request":7.9}}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 7}, ""},
		{"limit negative", `{"conversation_tracking":{"max_entries_per_request":-1}}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 100}, "max_entries"},
		{"limit a string", `{"conversation_tracking":{"max_entries_per_request":"9"}}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 100}, "max_entries"},
		{"limit huge", `{"conversation_tracking":{"max_entries_per_request":1e300}}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 1<<31 - 1}, ""},
		{"server of another kind", `{"server_url":5}`, cred, Policy{Dir: "x", Enabled: true, MaxEntries: 100,
			HasCredentials: true, APIKey: "k", ProjectHash: "h"}, "server_url"},
		{"server of another scheme", `{"server_url":"file:///etc"}`, "", Policy{Dir: "x", Enabled: true, MaxEntries: 100}, "server_url"},
		{"credentials alone", "", cred, Policy{Dir: "x", Enabled: true, MaxEntries: 100, ServerURL: "http://localhost:5000",
			HasCredentials: true, APIKey: "k", ProjectHash: "h"}, ""},
		{"both", `{"server_url":"http://h:1"}`, cred, Policy{Dir: "x", Enabled: true, MaxEntries: 100, ServerURL: "http://h:1",
			HasCredentials: true, APIKey: "k", ProjectHash: "h"}, ""},
		{"server empty", `{"server_url":""}`, cred, Policy{Dir: "x", Enabled: true, MaxEntries: 100, ServerURL: DefaultServerURL,
			HasCredentials: true, APIKey: "k", ProjectHash: "h"}, ""},
		{"broken credentials", `{}`, `{"api_key":`, Policy{Dir: "x", Enabled: true, MaxEntries: 100}, "credentials.json"},
		{"credentials null", `{}`, `null`, Policy{Dir: "x", Enabled: true, MaxEntries: 100}, "credentials.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.config != "" {
				write(t, dir, ".codetracker/config.json", tt.config)
			}
			if tt.credentials != "" {
				write(t, dir, ".codetracker/credentials.json", tt.credentials)
			}
			got := find(t, dir)
			if tt.want.Dir != "" {
				tt.want.Dir = dir
			}
			kit.Check(t, strings.Contains(got.Advice, tt.notice) && (tt.notice == "") == (got.Advice == ""),
				"Notice = %q, want something about %q", got.Advice, tt.notice)
			kit.Check(t, (got.Why == "") == got.Enabled, "Enabled is %t, and the reason is %q", got.Enabled, got.Why)
			got.Advice, got.Why, got.named = "", "", false
			kit.Check(t, got == tt.want, "Find = %+v, want %+v", got, tt.want)
		})
	}
}

// What may be an opt-out is held back until it is known.
func TestConfigUnknown(t *testing.T) {
	for name, config := range map[string]string{
		"empty file":              "",
		"half written":            `{"conversation_tracking":{"enabled":fal`,
		"no object":               `[{"conversation_tracking":{"enabled":false}}]`,
		"null":                    `null`,
		"enabled of another kind": `{"conversation_tracking":{"enabled":"false"}}`,
		"tracking of another":     `{"conversation_tracking":false}`,
		"too large":               `{"a":"` + strings.Repeat("x", maxFile) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, dir, ".codetracker/config.json", config)
			write(t, dir, ".codetracker/credentials.json", `{"api_key":"k"}`)
			f := NewFinder()
			f.Recheck = 0
			p, err := f.Find(dir)
			kit.Require(t, errors.Is(err, ErrUnknown) && !p.Enabled && strings.Contains(err.Error(), path),
				"Find = %v, %v; want ErrUnknown naming the file, not enabled", p, err)
			write(t, dir, ".codetracker/config.json", `{}`)
			p, err = f.Find(dir)
			kit.Check(t, err == nil && p.Enabled, "once put right: %v, %v", p, err)
		})
	}
}

func TestConfigNoFile(t *testing.T) {
	dir := t.TempDir()
	kit.Must(t, os.MkdirAll(filepath.Join(dir, ".codetracker", "config.json"), 0o700))
	p, err := NewFinder().Find(dir)
	kit.Check(t, errors.Is(err, ErrUnknown) && !p.Enabled, "a directory as config.json: %v, %v", p, err)
	dir = t.TempDir()
	kit.Must(t, os.MkdirAll(filepath.Join(dir, ".codetracker", "credentials.json"), 0o700))
	p, err = NewFinder().Find(dir)
	kit.Check(t, err == nil && p.Enabled && p.Advice != "", "a directory as credentials.json: %v, %v", p, err)
}

// Credentials decide a project's hash for good, so they are not taken for missing while they are being written.
func TestCredentialsHalfWritten(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, ".codetracker/credentials.json", `{"api_key":"k","current_pro`)
	var now time.Time
	for tries := 1; ; tries++ { // a machine may stand still for longer than "just"
		now = time.Now()
		kit.Must(t, os.Chtimes(path, now, now))
		p, err := NewFinder().Find(dir)
		if errors.Is(err, ErrUnknown) && !p.Enabled {
			break
		}
		kit.Require(t, tries != 20, "just written: %v, %v", p, err)
	}
	future := now.Add(24 * time.Hour)
	kit.Must(t, os.Chtimes(path, future, future))
	p, err := NewFinder().Find(dir)
	kit.Check(t, err == nil && p.Enabled, "dated in the future: %v, %v", p, err)
}
