package transcript

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestFolderName(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/kim/shop": "shop", "/home/kim/shop/": "shop", "/": "/", `C:\Users\dev\source\shop`: "shop", `c:/src/shop`: "shop",
		`\\wsl.localhost\Ubuntu\home\dev\shop`: "shop", `\\server\share\`: "share", `/home/kim/a\b`: `a\b`, "/mnt/c/src/shop": "shop",
		"/home/kim/my shop": "my shop", `C:\src\shop\`: "shop", "": "",
	} {
		kit.Equal(t, dir, FolderName(dir), want)
	}
}

func TestRepositoryOf(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/kim/shop": "/home/kim/shop", "/home/kim/shop/.claude/worktrees/fix/cmd": "/home/kim/shop",
		`C:\src\shop\.claude\worktrees\fix`: `C:\src\shop`, "": "",
	} {
		kit.Equal(t, dir, RepositoryOf(dir), want)
	}
}
