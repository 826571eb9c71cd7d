//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/ccship/ccship/e2e/kit"
)

// recipe is the block of a language on the page.
func recipe(t *testing.T, page []byte, language string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)```\n").FindSubmatch(page)
	kit.Require(t, block != nil, "no block of %s", language)
	return string(block[1])
}

// commands are those of the recipes, as a shell gets them.
func recipeCommands(t *testing.T, page []byte) (commands []string) {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	must(t, yaml.Unmarshal([]byte(recipe(t, page, "yaml")), &workflow))
	for _, step := range workflow.Jobs["review"].Steps {
		commands = append(commands, step.Run)
	}
	var container struct{ PostStartCommand string }
	must(t, json.Unmarshal([]byte(recipe(t, page, "json")), &container))
	commands = append(commands, container.PostStartCommand+`; shopt -s expand_aliases; . ~/.bashrc`+"\nclaude --continue")
	var entry []string
	_, point, _ := strings.Cut(recipe(t, page, "dockerfile"), "ENTRYPOINT ")
	must(t, json.Unmarshal([]byte(point), &entry))
	cron := strings.Fields(recipe(t, page, "crontab"))
	return append(commands, strings.Join(entry, " "), strings.Join(cron[5:], " "))
}

// TestCaptureRecipes runs the commands of the recipes in daily-use.md, in one home, with a stand-in for Claude Code that
// writes a line each time.
func TestCaptureRecipes(t *testing.T) {
	t.Parallel()
	page := kit.Try(os.ReadFile("../docs/daily-use.md")).Must(t)
	s := newScribe(exactWorld(t), 80, 1)
	programs := filepath.Join(s.dir, "programs")
	must(t, os.MkdirAll(programs, 0o700))
	stand := "#!/bin/sh\nmkdir -p '" + filepath.Dir(s.path) + "'\nprintf '{\"type\":\"user\",\"n\":%d}\\n' $$ >>'" + s.path + "'\necho done\n"
	must(t, os.WriteFile(filepath.Join(programs, "claude"), []byte(stand), 0o700))
	must(t, os.WriteFile(filepath.Join(s.dir, ".ccship-env"), []byte("export RECIPE=1\n"), 0o600))
	must(t, os.Symlink(kit.Program(t, "ccship"), filepath.Join(programs, "ccship")))
	captured := 0
	for _, text := range recipeCommands(t, page) {
		text = strings.NewReplacer("/tmp/ccship-key", s.keyFile(), "/var/lib/ccship", filepath.Join(s.dir, "volume")).Replace(text)
		cmd := s.command(context.Background(), "bash", "-e", "-c", text)
		cmd.Env = append(cmd.Env, "PATH="+programs+":"+os.Getenv("PATH"), "KEY="+s.key)
		out, err := cmd.CombinedOutput()
		kit.Check(t, err == nil && !strings.Contains(string(out), "ccship:"), "%s: %v, %s", text, err, out)
		if strings.Contains(text, "capture") {
			captured++
			s.same(s.session, s.path)
		}
	}
	lines := strings.Count(string(s.read(s.path)), "\n")
	kit.Check(t, captured == 4 && lines == captured, "%d lines of %d captures", lines, captured)
}

// TestDevcontainerSchema holds the recipe of a devcontainer against a copy of the published schema, which sees a name
// that is misspelled.
func TestDevcontainerSchema(t *testing.T) {
	file := kit.Setting("schema", "")
	if file == "" {
		t.Skip("lab devcontainer runs it, with the schema")
	}
	page := kit.Try(os.ReadFile("../docs/daily-use.md")).Must(t)
	schema := kit.Try(jsonschema.NewCompiler().Compile(file)).Must(t)
	text := recipe(t, page, "json")
	for _, valid := range []bool{true, false} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		must(t, err)
		err = schema.Validate(doc)
		kit.Check(t, (err == nil) == valid, "%s\n%v", text, err)
		text = strings.Replace(text, "postStartCommand", "postStartComand", 1)
	}
}
