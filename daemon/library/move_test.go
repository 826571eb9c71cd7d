package library

import (
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestMove(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the expected paths have slashes")
	}
	for _, c := range []struct{ old, now, cwd, want string }{
		{"/home/kim/shop", "/w/shop", "/home/kim/shop", "/w/shop"},
		{"/home/kim/shop", "/w/shop", "/home/kim/shop/api/v2", "/w/shop/api/v2"},
		{"/home/kim/shop/", "/w/shop", "/home/kim/shop", "/w/shop"},
		{"/home/kim/shop", "/w/shop", "/home/kim/shop2", "/home/kim/shop2"},
		{"/home/kim/shop", "/w/shop", "/home/kim", "/home/kim"},
		{"/home/kim/shop", "/w/shop", "/tmp/x", "/tmp/x"},
		{"/home/kim/shop", "/w/shop", "", ""},
		{"", "/w/shop", "/home", "/home"},
		{`C:\src\shop`, "/w/shop", `C:\src\shop`, "/w/shop"},
		{`C:\src\shop`, "/w/shop", `c:\SRC\shop\api\v2`, "/w/shop/api/v2"},
		{`C:\src\shop`, "/w/shop", `C:/src/shop/api`, "/w/shop/api"},
		{`C:\src\shop`, "/w/shop", `C:\src\shopping`, `C:\src\shopping`},
		{`\\nas\src\shop`, "/w/shop", `\\nas\src\shop\api`, "/w/shop/api"},
		{"/r/.claude/worktrees/a", "/w/r", "/r/.claude/worktrees/a/x", "/w/r/x"},
		{"/r/.claude/worktrees/a", "/w/r", "/r/x", "/w/r/x"},
		{"/r/.claude/worktrees/a", "/w/r", "/r/.claude/worktrees/b", "/w/r/.claude/worktrees/b"},
		{"/r/.worktrees/a", "/w/r", "/r/x", "/w/r/x"},
		{"/r", "/w/r", "/r/.claude/worktrees/a/x", "/w/r/.claude/worktrees/a/x"},
	} {
		got := newMove(c.old, c.now).to(c.cwd)
		kit.Check(t, got == c.want, "%s to %s: %s became %s, want %s", c.old, c.now, c.cwd, got, c.want)
	}
}

// TestMoveLine changes working directories only, and no byte next to them.
func TestMoveLine(t *testing.T) {
	m := newMove("/home/kim/shop", "/w")
	for line, want := range map[string]string{
		`{"cwd":"/home/kim/shop/a","message":{"content":"cd /home/kim/shop","cwd":"/home/kim/shop"},"o":"/home/kim/shop"}`: `{"cwd":"/w/a","message":{"content":"cd /home/kim/shop","cwd":"/home/kim/shop"},"o":"/home/kim/shop"}`,
		`{"type":"relocated","relocatedCwd":"/home/kim/shop"}`:                                                             `{"type":"relocated","relocatedCwd":"/w"}`,
		`{"type":"worktree-state","worktreeSession":{"originalCwd":"/home/kim/shop"}}`:                                     `{"type":"worktree-state","worktreeSession":{"originalCwd":"/home/kim/shop"}}`,
		`{"cwd":"/home/kim/shop"`: `{"cwd":"/home/kim/shop"`,
		"":                        "",
	} {
		got := string(m.line([]byte(line)))
		kit.Check(t, got == want, "%s\nbecame %s\nwant   %s", line, got, want)
	}
	a, b := neutral([]byte(`{"cwd":"/a","x":1}`)), neutral([]byte(`{"cwd":"/b/c","x":1}`))
	kit.Check(t, string(a) == string(b), "%s and %s", a, b)
}

func TestFolderName(t *testing.T) {
	for cwd, want := range map[string]string{
		"/home/kim/web_app.v2": "-home-kim-web-app-v2", `C:\src\x`: "C--src-x", "/a/é": "-a--", "/a/😀": "-a---", "/a//b": "-a--b",
		"/" + strings.Repeat("x", 200): "", "/a/e\u0301": "",
	} {
		got, ok := folderName(cwd)
		kit.Check(t, ok == (want != "") && (!ok || got == want), "%q: %q %v, want %q", cwd, got, ok, want)
	}
}
