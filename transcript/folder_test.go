package transcript

import "testing"

func TestFolderName(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/kim/shop": "shop", "/home/kim/shop/": "shop", "/": "/", `C:\Users\dev\source\shop`: "shop", `c:/src/shop`: "shop",
		`\\wsl.localhost\Ubuntu\home\dev\shop`: "shop", `\\server\share\`: "share", `/home/kim/a\b`: `a\b`, "/mnt/c/src/shop": "shop",
		"/home/kim/my shop": "my shop", `C:\src\shop\`: "shop", "": "",
	} {
		if got := FolderName(dir); got != want {
			t.Errorf("%q: %q, want %q", dir, got, want)
		}
	}
}

func TestRepositoryOf(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/kim/shop": "/home/kim/shop", "/home/kim/shop/.claude/worktrees/fix/cmd": "/home/kim/shop",
		`C:\src\shop\.claude\worktrees\fix`: `C:\src\shop`, "": "",
	} {
		if got := RepositoryOf(dir); got != want {
			t.Errorf("%q: %q, want %q", dir, got, want)
		}
	}
}
