package packaging_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/packaging"
)

func parse(t *testing.T, name string, into any) {
	t.Helper()
	text, err := fs.ReadFile(packaging.Plugin(), name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	kit.Require(t, err == nil, "%s: %v", name, err)
}

// oldEvents are the hooks that the oldest Claude Code with plugins knows. One name more, and it drops all of them
// without a word.
var oldEvents = []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"}

// TestPluginHooks: only old names, only commands of ours, and none but the one at the start is waited for.
func TestPluginHooks(t *testing.T) {
	var hooks struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Type, Command string
				Async         bool
				Args          []string
				Timeout       int
			}
		}
	}
	parse(t, "hooks/hooks.json", &hooks)
	var said []string
	for event, entries := range hooks.Hooks {
		kit.Check(t, slices.Contains(oldEvents, event), "%s is no event that every version knows", event)
		for _, e := range entries {
			for _, h := range e.Hooks {
				said = append(said, event+" "+h.Command)
				kit.Check(t, h.Type == "command" && h.Args == nil && h.Timeout != 0 && h.Async == (event != "SessionStart"),
					"%s: %+v", event, h)
			}
		}
	}
	var want []string
	for event, verb := range map[string]string{
		"PostToolUse": "post-tool-use", "PreToolUse": "pre-tool-use", "SessionStart": "session-start",
		"UserPromptSubmit": "user-prompt-submit",
	} {
		want = append(want, event+" ccship-hook "+verb)
	}
	slices.Sort(want)
	if slices.Sort(said); !slices.Equal(said, want) {
		t.Errorf("hooks are %q, want %q", said, want)
	}
}

// TestPluginMarketplaces: the plugin's folder and the top of a checkout are both marketplaces of the same plugin.
func TestPluginMarketplaces(t *testing.T) {
	var plugin struct{ Name, Version, Description string }
	parse(t, ".claude-plugin/plugin.json", &plugin)
	kit.Check(t, plugin.Name == "ccship" && plugin.Version != "" && plugin.Description != "", "the plugin is %+v", plugin)
	var mcp struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	parse(t, ".mcp.json", &mcp)
	if s := mcp.Servers["ccship"]; len(mcp.Servers) != 1 || s.Command != "ccship" || !slices.Equal(s.Args, []string{"mcp"}) {
		t.Errorf("MCP servers are %+v", mcp.Servers)
	}
	for _, root := range []string{"claude-plugin", ".."} {
		text := kit.Try(os.ReadFile(filepath.Join(root, ".claude-plugin", "marketplace.json"))).Must(t)
		var market struct {
			Name    string
			Owner   struct{ Name string }
			Plugins []struct{ Name, Source string }
		}
		if err := json.Unmarshal(text, &market); err != nil || market.Name != "ccship" || market.Owner.Name == "" || len(market.Plugins) != 1 {
			t.Fatalf("%s: %+v, %v", root, market, err)
		}
		p := market.Plugins[0]
		if _, err := os.Stat(filepath.Join(root, p.Source, ".claude-plugin", "plugin.json")); err != nil || p.Name != plugin.Name || !strings.HasPrefix(p.Source, "./") {
			t.Errorf("%s: its plugin is %+v, %v", root, p, err)
		}
	}
}
