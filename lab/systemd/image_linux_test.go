package systemd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestImage runs the steps of the guide's Dockerfile in a box, in their order, with a stand-in for Claude Code and a
// server there.
func TestImage(t *testing.T) {
	b := newBox(t)
	b.boot()
	b.put("/usr/local/bin/claude", "#!/bin/sh\nmkdir -p ~/.claude/projects/-work\nid=3f2a9c01-5a1b-4c2d-8e3f-0123456789ab\n"+
		`printf '{"type":"user","uuid":"u1","sessionId":"%s","cwd":"/work","message":{"role":"user","content":"a kite in the hall"}}\n' `+
		"$id >~/.claude/projects/-work/$id.jsonl\nexit 3\n", 0o755)
	bring := func(program, to string) {
		b.put(to+"/"+program, string(kit.Try(os.ReadFile(kit.Program(t, program))).Must(t)), 0o755)
	}
	bring("ccship-server", "/usr/local/bin")
	key := b.ok(b.rootDo("ccship-server", "key", "create", "--name", "image"))
	b.ok(b.rootDo("systemd-run", "--setenv=HOME=/root", "/usr/local/bin/ccship-server", "serve"))

	page := string(kit.Try(os.ReadFile(filepath.Join(kit.Try(kit.Root()).Must(t), "docs/daily-use.md"))).Must(t))
	steps := regexp.MustCompile("(?s)\n```dockerfile\n(.*?)```").FindStringSubmatch(page)
	kit.Require(t, steps != nil, "the guide has no Dockerfile")
	env := clean("/root", "root")
	for step := range strings.Lines(steps[1]) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		words := strings.Fields(rest)
		switch verb {
		case "COPY":
			bring(words[0], strings.TrimSuffix(words[1], "/"))
		case "ENV":
			env = append(env, strings.Fields(strings.Replace(rest, "https://ccship.example.org", "http://127.0.0.1:5000", 1))...)
			b.ok(b.inside(key, append(clean("/root", "root"), "sh", "-c", "umask 077; mkdir -p /run/secrets; cat >/run/secrets/ccship")))
		case "VOLUME":
			b.ok(b.rootDo("mkdir", "-p", rest))
		case "ENTRYPOINT":
			var entry []string
			kit.Must(t, json.Unmarshal([]byte(rest), &entry))
			r := b.inside("", append(env, entry...))
			kit.Check(t, r.code == 3 && r.stderr == "", "the image's command: %v", r)
			kit.Has(t, "a search finds", b.ok(b.inside("", append(env, "ccship", "search", "kite hall"))), "a kite in the hall")
			return
		default:
			t.Fatalf("there is no way to do %q here", step)
		}
	}
	t.Fatal("the Dockerfile has no ENTRYPOINT")
}
