package transcript

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestMayAsk(t *testing.T) {
	for _, x := range []struct {
		mode, tool, path, cwd string
		want                  bool
	}{
		{"default", "Bash", "", "/w", true}, {"", "mcp__x__y", "", "/w", true}, {"acceptEdits", "Bash", "", "/w", true},
		{"bypassPermissions", "Bash", "", "/w", false}, {"dontAsk", "Write", "/etc/x", "/w", false},
		{"default", "Read", "/w/a.go", "/w", false}, {"default", "Read", "/w", "/w/", false}, {"default", "Read", "/work/a.go", "/w", true},
		{"default", "Read", "/w/../etc/x", "/w", true}, {"default", "Read", "~/x", "/w", true}, {"default", "Read", "/w/a.go", "", true},
		{"default", "Grep", "", "/w", false}, {"default", "Glob", "src", "/w", false}, {"default", "Read", `C:\w\a.go`, `C:\w`, false}, {"default", "Read", `D:\w\a.go`, `C:\w`, true},
		{"default", "Edit", "/w/a.go", "/w", true}, {"acceptEdits", "Edit", "/w/a.go", "/w", false}, {"acceptEdits", "Write", "/etc/x", "/w", true},
		{"acceptEdits", "Write", "", "/w", true}, {"plan", "Read", "/w/a.go", "/w", false}, {"default", "TodoWrite", "", "", false},
		{"default", "web_search", "", "/w", false}, {"default", "advisor", "", "/w", false}, {"default", "WebSearch", "", "/w", true},
	} {
		kit.Equal(t, fmt.Sprintf("%+v", x), MayAsk(x.mode, x.tool, x.path, x.cwd), x.want)
	}
}
