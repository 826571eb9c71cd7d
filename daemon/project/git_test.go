package project

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestNormalizeRemote(t *testing.T) {
	const want = "host.example/team/repo"
	for _, address := range []string{
		"git@host.example:team/repo.git", "host.example:team/repo", "HOST.example:/team/repo.git/",
		"ssh://git@host.example/team/repo.git", "ssh://git@host.example:2222/team/repo", "git+ssh://host.example/team/repo",
		"https://host.example/team/repo", "https://Host.Example:443/team/repo.git", "https://me:secret@host.example/team//repo.git/",
		"http://host.example/team/repo/", "git://host.example/team/repo.git", "https://host.example./team/repo?a=b#c",
		"[host.example:2222]:team/repo.git", "git@[host.example:2222]:team/repo.git", "https://me:50%-off@host.example:8443/team/repo.git",
	} {
		got := normalizeRemote(address, "/top")
		kit.Check(t, got == want, "normalizeRemote(%q) = %q, want %q", address, got, want)
	}
	for address, want := range map[string]string{
		"":                                    "",
		"git@github.com:Team/Repo.git":        "github.com/Team/Repo",
		"ssh://git@ssh.github.com:443/t/r":    "github.com/t/r",
		"https://h.example/a%20b.git":         "h.example/a b",
		"[::1]:t/r.git":                       "::1/t/r",
		"https://[::1]:3000/t/r.git":          "::1/t/r",
		"/srv/git/r.git":                      "file:///srv/git/r",
		"file:///srv/git/r.git":               "file:///srv/git/r",
		"../r.git":                            "file:///r",
		"c:/r.git":                            "file:///top/c:/r",
		"./a:b/r.git":                         "file:///top/a:b/r",
		"https://h.example/t/.git":            "h.example/t",
		"git@h.example:~kim/r.git":            "h.example/~kim/r",
		"https://h.example/t/r.github.io.git": "h.example/t/r.github.io",
	} {
		got := normalizeRemote(address, "/top")
		kit.Check(t, got == want, "normalizeRemote(%q) = %q, want %q", address, got, want)
	}
}

func TestParseGitConfig(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"usual", "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@h:t/r.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", "git@h:t/r.git"},
		{"origin before the first", "[remote \"a\"]\nurl=1\n[remote \"origin\"]\nurl=2\n", "2"},
		{"the first without origin", "[remote \"a\"]\nurl=1\n[remote \"b\"]\nurl=2\n", "1"},
		{"first of several urls", "[remote \"origin\"]\nurl=1\nurl=2\n[remote \"origin\"]\nurl=3\n", "1"},
		{"pushurl is none", "[remote \"origin\"]\npushurl=1\n", ""},
		{"name is exact", "[remote \"Origin\"]\nurl=1\n[remote \"x\"]\nurl=2\n[remote \"origin\"]\nurl=3\n", "3"},
		{"case and CRLF", "[REMOTE \"origin\"]\r\n\tURL = 1 \r\n", "1"},
		{"older form", "[remote.origin]\nurl=1\n", "1"},
		{"one line", "[remote \"origin\"] url = 1", "1"},
		{"comments", "; x\n[remote \"origin\"] # y\n# url=0\nurl = 1 ; z\n", "1"},
		{"quotes", "[remote \"origin\"]\nurl = \"a # b \\\"c\\\"\"  # d\n", `a # b "c"`},
		{"escapes in the name", `[remote "or\igin"]` + "\nurl=1\n", "1"},
		{"bracket in the name", "[remote \"a]b\"]\nurl=1\n", "1"},
		{"continued", "[remote \"origin\"]\nurl = ht\\\ntp://x\n", "http://x"},
		{"other section", "[remotes \"origin\"]\nurl=1\n[url \"x\"]\ninsteadOf=y\n[submodule \"origin\"]\nurl=2\n", ""},
		{"torn", "[remote \"origin\nurl=1\n", ""},
		{"key without value", "[remote \"origin\"]\nurl\nurl=1\n", "1"},
		{"empty value", "[remote \"origin\"]\nurl=\n", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := pickRemote(parseGitConfig([]byte(tt.text)))
			kit.Check(t, got == tt.want, "remote of %q = %q, want %q", tt.text, got, tt.want)
		})
	}
}

func FuzzGitConfig(f *testing.F) {
	f.Add("[remote \"origin\"]\n\turl = \"a\\\"b\" ; c\n")
	f.Add("[a.b] url=\\\n\\")
	f.Fuzz(func(t *testing.T, text string) {
		normalizeRemote(pickRemote(parseGitConfig([]byte(text))), "/top")
		normalizeRemote(text, "/top")
	})
}

func TestFindRemote(t *testing.T) {
	const config = "[remote \"origin\"]\n\turl = https://h.example/t/%.git\n"
	root := t.TempDir()
	write(t, root, "repo/.git/config", strings.Replace(config, "%", "repo", 1))
	write(t, root, "repo/.git/worktrees/w/commondir", "../..\n")
	write(t, root, "repo/.claude/worktrees/w/.git", "gitdir: "+filepath.Join(root, "repo/.git/worktrees/w")+"\n")
	write(t, root, "elsewhere/.git", "gitdir: ../repo/.git/worktrees/w\n")
	write(t, root, "repo/.git/modules/sub/config", strings.Replace(config, "%", "sub", 1))
	write(t, root, "repo/sub/.git", "gitdir: ../.git/modules/sub\n")
	write(t, root, "repo/bad/.git", "no git file\n")
	write(t, root, "repo/gone/.git", "gitdir: ../nowhere\n")
	write(t, root, "repo/inner/.git/HEAD", "no configuration here\n")
	write(t, root, "bare/.git/config", "[core]\n")
	write(t, root, "odd/.git/config/x", "a folder of that name\n")
	write(t, root, "loop/.git", "gitdir: .git\n")
	for cwd, want := range map[string]string{
		"repo":                        "h.example/t/repo",
		"repo/a/b":                    "h.example/t/repo",
		"repo/.claude/worktrees/w/x":  "h.example/t/repo",
		"repo/.claude/worktrees/gone": "h.example/t/repo",
		"elsewhere":                   "h.example/t/repo",
		"repo/sub/x":                  "h.example/t/sub",
		"repo/bad":                    "h.example/t/repo",
		"repo/gone":                   "h.example/t/repo",
		"repo/inner":                  "h.example/t/repo",
		"bare":                        "",
		"odd":                         "",
		"loop":                        "",
		"none":                        "",
	} {
		got := find(t, filepath.Join(root, cwd)).Remote
		kit.Check(t, got == want, "remote of %s = %q, want %q", cwd, got, want)
	}
}

// TestTop: a folder below a work tree is of the repository, whose folder gives it its name.
func TestTop(t *testing.T) {
	root := t.TempDir()
	write(t, root, "repo/.git/config", "[core]\n")
	write(t, root, "repo/.git/worktrees/w/commondir", "../..\n")
	write(t, root, "elsewhere/.git", "gitdir: ../repo/.git/worktrees/w\n")
	write(t, root, "repo/.git/modules/sub/config", "[core]\n")
	write(t, root, "repo/sub/.git", "gitdir: ../.git/modules/sub\n")
	write(t, root, "bare/proj.git/config", "[core]\n")
	write(t, root, "bare/proj.git/worktrees/m/commondir", "../..\n")
	write(t, root, "bare/m/.git", "gitdir: ../proj.git/worktrees/m\n")
	write(t, root, "hidden/.bare/config", "[core]\n")
	write(t, root, "hidden/.git", "gitdir: ./.bare\n")
	write(t, root, "hidden/m/.git", "gitdir: ../.bare/worktrees/m\n")
	write(t, root, "hidden/.bare/worktrees/m/commondir", "../..\n")
	for cwd, want := range map[string]string{
		"repo": "repo", "repo/a/b": "repo", "repo/.claude/worktrees/gone": "repo", "elsewhere/x": "repo", "repo/sub": "",
		"bare/m/x": "bare/proj", "hidden/m": "hidden", "hidden": "hidden", "none": "",
	} {
		if want != "" {
			want = filepath.Join(root, want)
		}
		kit.Equal(t, cwd, find(t, filepath.Join(root, cwd)).Top(), want)
	}
}

// TestFindRepository: a worktree belongs to its repository, also without a remote, and after it is gone.
func TestFindRepository(t *testing.T) {
	root := t.TempDir()
	write(t, root, "repo/.git/config", "[core]\n")
	write(t, root, "repo/.git/worktrees/w/commondir", "../..\n")
	write(t, root, "repo/.claude/worktrees/w/.git", "gitdir: "+filepath.Join(root, "repo/.git/worktrees/w")+"\n")
	write(t, root, "elsewhere/.git", "gitdir: ../repo/.git/worktrees/w\n")
	write(t, root, "repo/.git/modules/sub/config", "[core]\n")
	write(t, root, "repo/sub/.git", "gitdir: ../.git/modules/sub\n")
	write(t, root, "bare.git/worktrees/b/commondir", "../..\n")
	write(t, root, "ofbare/.git", "gitdir: ../bare.git/worktrees/b\n")
	write(t, root, "odd/.git", "no git file\n")
	write(t, root, "repo/.worktrees/plain/left.over", "\n")
	write(t, root, "norepo/.worktrees/n/x", "\n")
	write(t, root, "repo/.git/worktrees/s/gitdir", filepath.Join(root, "repo-fix", ".git")+"\n")
	write(t, root, "repo/.git/worktrees/d/gitdir", filepath.Join(root, "repo", "deep", "tree", ".git")+"\n")
	write(t, root, "repo/.git/worktrees/r/gitdir", "../../../../relative/.git\n")
	write(t, root, "repo/.git/worktrees/empty/gitdir", "")
	write(t, root, "repo/.git/worktrees/file", "no folder\n")
	write(t, root, "not/.git/worktrees/f/x", "\n")
	repo := filepath.Join(root, "repo")
	for cwd, want := range map[string]string{
		"repo": "", "repo/a": "", "repo/sub/x": "", "ofbare": "", "odd": "", "none": "",
		"repo/.claude/worktrees/w": repo, "repo/.claude/worktrees/w/x/y": repo, "repo/.claude/worktrees/gone": repo,
		"elsewhere": repo, "elsewhere/x": repo,
		"repo/.worktrees/7": repo, "repo/.worktrees/7/x": repo, "repo/.worktrees/plain": repo, "repo/.worktrees": "",
		"norepo/.worktrees/7": "", "norepo/.worktrees/n": "", "repo/gone": "",
		"repo-fix": repo, "repo-fix/a/b": repo, "repo-fixed": "", "repo/deep/tree": repo, "repo/deep/tree/x": repo, "repo/deep/other": "",
		"relative": repo,
	} {
		p := find(t, filepath.Join(root, cwd))
		kit.Check(t, p.Repository == want, "%s belongs to %q, want %q", cwd, p.Repository, want)
		same := Hash(filepath.Join(root, cwd), "f", p, nil) == Hash(repo, "f", find(t, repo), nil)
		kit.Check(t, same == (want != "" || cwd == "repo"), "%s has the hash of the repository: %v", cwd, same)
	}
}

// TestFindRepositoryRemote: a work tree elsewhere that is gone has the remote of its repository.
func TestFindRepositoryRemote(t *testing.T) {
	root := t.TempDir()
	write(t, root, "repo/.git/config", "[remote \"origin\"]\n\turl = https://h.example/t/r.git\n")
	write(t, root, "repo/.git/worktrees/s/gitdir", filepath.Join(root, "fix", ".git")+"\n")
	at := filepath.Join(root, "fix")
	p, of := find(t, at), find(t, filepath.Join(root, "repo"))
	kit.Check(t, p.Gone && !of.Gone && p.Remote != "" && Hash(at, "f", p, nil) == Hash(filepath.Join(root, "repo"), "f", of, nil),
		"%+v is not of %+v", p, of)
}

func TestHash(t *testing.T) {
	sum := func(s string) string {
		h := sha256.Sum256([]byte(s))
		return hex.EncodeToString(h[:])
	}
	full := Policy{Dir: "/a", ProjectHash: "from credentials", Remote: "h.example/t/r"}
	for _, tt := range []struct {
		cwd, folder string
		p           Policy
		trusted     []string
		want        string
	}{
		{"/a", "-a", full, []string{"/a"}, "from credentials"},
		{"/a", "-a", full, []string{"/b"}, sum("h.example/t/r")},
		{"/a", "-a", Policy{Dir: "/a", ProjectHash: "from credentials"}, nil, sum("/a")},
		{"/a", "-a", Policy{Remote: "h.example/t/r"}, nil, sum("h.example/t/r")},
		{"/a", "-a", Policy{}, nil, sum("/a")},
		{"", "-a", Policy{}, nil, sum("-a")},
	} {
		got := Hash(tt.cwd, tt.folder, tt.p, tt.trusted)
		kit.Check(t, got == tt.want, "Hash(%q, %q, %+v) = %s, want %s", tt.cwd, tt.folder, tt.p, got, tt.want)
	}
}
