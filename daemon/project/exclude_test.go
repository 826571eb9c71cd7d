package project

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestExclude(t *testing.T) {
	root := t.TempDir()
	slash := filepath.ToSlash(root)
	odd := "a[b]{c,d}}*?"
	if runtime.GOOS == "windows" {
		odd = "a[b]{c,d}"
	}
	tests := []struct {
		pattern, cwd string
		out          bool
	}{
		{slash + "/a", "a", true},
		{slash + "/a", "a/b/c", true}, // all below it
		{slash + "/a/", "a", true},
		{slash + "/a", "ab", false},
		{slash + "/a", "", false}, // not what is above it
		{slash + "/*/secret", "x/secret/y", true},
		{slash + "/*/secret", "x/y/secret", false},
		{slash + "/**/secret", "x/y/secret", true},
		{"**/secret", "x/y/secret/z", true},
		{"**/secret", "x/secrets", false},
		{slash + "/{a,b}", "b", true},
		{slash + "/[a-c]?", "bx", true},
		{slash + "/[!a-c]?", "bx", false},
		{Literal(filepath.Join(root, odd)), odd + "/sub", true},
		{Literal(filepath.Join(root, odd)), "ab", false},
	}
	for _, tt := range tests {
		kit.Err(t, fmt.Sprintf("CheckPattern(%s)", tt.pattern), nil)(CheckPattern(tt.pattern))
		f := NewFinder()
		f.Exclude([]string{"/nowhere", tt.pattern})
		p, err := f.Find(filepath.Join(root, tt.cwd))
		kit.Check(t, err == nil && p.Enabled != tt.out && (!tt.out || strings.Contains(p.Why, tt.pattern)),
			"pattern %s, folder %s: %+v %v, want excluded %t", tt.pattern, tt.cwd, p, err, tt.out)
	}
}

func TestCheckPattern(t *testing.T) {
	for _, bad := range []string{"", "a/b", "./a", "*", "a**/b", "/a[", "/a{b", "/a[]"} {
		kit.Check(t, CheckPattern(bad) != nil, "%q passes", bad)
	}
}

// A folder is excluded under each of its names.
func TestExcludeLinks(t *testing.T) {
	root := t.TempDir()
	real := filepath.Join(root, "real")
	kit.Must(t, os.MkdirAll(filepath.Join(real, "sub"), 0o700))
	if err := os.Symlink(real, filepath.Join(root, "link")); err != nil {
		t.Skip(err)
	}
	for _, test := range []struct {
		pattern, cwd string
		out          bool
	}{
		{"real", "link/sub", true}, {"link", "link/sub", true}, {"link", "real/sub", true}, {"other", "link/sub", false},
		{"link/s*", "real/sub", true}, {"link/x*", "real/sub", false},
	} {
		f := NewFinder()
		f.Exclude([]string{filepath.ToSlash(filepath.Join(root, test.pattern))})
		p, err := f.Find(filepath.Join(root, test.cwd))
		kit.Check(t, err == nil && p.Enabled != test.out, "pattern %s, folder %s: %+v %v", test.pattern, test.cwd, p, err)
	}
}

// A change holds at once, though answers are remembered.
func TestExcludeChanges(t *testing.T) {
	f := NewFinder()
	dir := t.TempDir()
	for _, out := range []bool{false, true, false} {
		var globs []string
		if out {
			globs = []string{filepath.ToSlash(dir)}
		}
		f.Exclude(globs)
		p, err := f.Find(dir)
		kit.Check(t, err == nil && p.Enabled != out, "Find = %+v %v, want excluded %t", p, err, out)
	}
}

func TestIgnoreFile(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, "home", "kim")
	write(t, root, ".ccshipignore", "") // above home: another's
	write(t, home, "shop/.ccshipignore", "what is in it does not matter")
	write(t, home, "folder/.ccshipignore/file", "")
	tests := []struct {
		cwd string
		out bool
	}{
		{"home/kim/shop", true},
		{"home/kim/shop/a/b", true},
		{"home/kim/folder", true},
		{"home/kim", false},
		{"home/kim/other", false},
		{"home/kimono", true}, // outside of home the search goes on to the root
		{"srv/project", true},
	}
	for _, tt := range tests {
		f := NewFinder()
		f.Home = home
		p, err := f.Find(filepath.Join(root, tt.cwd))
		kit.Check(t, err == nil && p.Enabled != tt.out && (!tt.out || strings.Contains(p.Why, IgnoreName)),
			"%s: %+v %v, want excluded %t", tt.cwd, p, err, tt.out)
	}
}

// A marker is found, and found to be gone, within a few seconds.
func TestIgnoreFileComesAndGoes(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := NewFinder()
		f.Home = filepath.Dir(dir)
		for _, out := range []bool{false, true, false} {
			if out {
				write(t, dir, IgnoreName, "")
			} else {
				os.Remove(filepath.Join(dir, IgnoreName))
			}
			<-time.After(DefaultRecheck)
			p, err := f.Find(dir)
			kit.Check(t, err == nil && p.Enabled != out, "Find = %+v %v, want excluded %t", p, err, out)
		}
	})
}

// TestExcludeWorktrees: what keeps a repository here keeps its linked work trees here, wherever they lie.
func TestExcludeWorktrees(t *testing.T) {
	for name, exclude := range map[string]func(t *testing.T, f *Finder, repo string){
		"pattern":     func(_ *testing.T, f *Finder, repo string) { f.Exclude([]string{Literal(repo)}) },
		"ignore file": func(t *testing.T, _ *Finder, repo string) { write(t, repo, IgnoreName, "") },
		"opt-out": func(t *testing.T, _ *Finder, repo string) {
			write(t, repo, ".codetracker/config.json", `{"conversation_tracking":{"enabled":false}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			repo, tree := filepath.Join(root, "shop"), filepath.Join(root, "elsewhere", "fix")
			write(t, repo, ".git/config", "[core]\n")
			write(t, repo, ".git/worktrees/w/commondir", "../..\n")
			write(t, tree, ".git", "gitdir: "+filepath.Join(repo, ".git/worktrees/w")+"\n")
			f := NewFinder()
			f.Recheck = 0
			p, err := f.Find(filepath.Join(tree, "sub"))
			kit.Require(t, err == nil && p.Enabled && p.Repository == repo, "before: %+v, %v", p, err)
			exclude(t, f, repo)
			p, err = f.Find(filepath.Join(tree, "sub"))
			kit.Check(t, err == nil && !p.Enabled && p.Why != "", "a work tree of an excluded repository: %+v, %v", p, err)
		})
	}
}
