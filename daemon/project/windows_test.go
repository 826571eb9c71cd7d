package project

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestUsual(t *testing.T) {
	for dir, want := range map[string]string{
		`C:\w\app`: `C:\w\app`, `c:\w\app\`: `C:\w\app`, `c:/w/app`: `C:\w\app`, `/c/w/app/`: `C:\w\app`, `/mnt/c/w/app`: `C:\w\app`,
		`/cygdrive/c/w/app`: `C:\w\app`, `\\?\c:\w\app`: `C:\w\app`, `C:\w\.\x\..\app`: `C:\w\app`, `C:/w//app`: `C:\w\app`,
		`c:`: `C:\`, `/mnt/c`: `C:\`, `d:\`: `D:\`, `C:\W\App`: `C:\W\App`,
		`\\Nas\share\app\`: `\\nas\share\app`, `//nas/share/app`: `\\nas\share\app`, `\\?\UNC\nas\share\app`: `\\nas\share\app`,
		`\\wsl$\Ubuntu\home\kim\app`: `\\wsl.localhost\Ubuntu\home\kim\app`,
		`/home/kim/app/`:             `/home/kim/app`, `/home/kim/a\b`: `/home/kim/a\b`, `/cd/app`: `/cd/app`, `/mnt/data/app`: `/mnt/data/app`,
		"/": "/", "": "", "app": "app",
	} {
		kit.Equal(t, dir, Usual(dir), want)
		kit.Equal(t, "again "+dir, Usual(want), want)
	}
}
