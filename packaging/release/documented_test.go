package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// pages are the documents that people read: those of the top folder, docs and docs/internals, without the records of
// decisions, which name commands of their time.
func pages(t *testing.T) []string {
	t.Helper()
	top := filepath.Join("..", "..")
	var found []string
	for _, folder := range []string{".", "docs", "docs/internals"} {
		more, err := filepath.Glob(filepath.Join(top, folder, "*.md"))
		kit.Require(t, err == nil && len(more) != 0, "no pages in %s: %v", folder, err)
		found = append(found, more...)
	}
	return found
}

// commandFlags reads the pages of all commands: each command with the flags it takes.
func commandFlags(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	for _, file := range []string{"commands.md", "server-commands.md"} {
		text := kit.Try(os.ReadFile(filepath.Join("..", "..", "docs", file))).Must(t)
		title, program := "", ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "# Commands of "):
				program = strings.TrimPrefix(line, "# Commands of ")
			case strings.HasPrefix(line, "#"):
				title = strings.TrimSpace(commandName.FindString(line))
				if strings.HasPrefix(line, "## Flags of every ") || strings.HasPrefix(line, "## Flags of most ") {
					title = program
				}
				known[title] = append(known[title], "--help", "-h")
			case strings.HasPrefix(line, "- `-"):
				name, _, _ := strings.Cut(line, "`: ")
				known[title] = append(known[title], flagNames(name)...)
			case strings.HasPrefix(line, "Also "):
				known[title] = append(known[title], flagNames(line)...)
				if _, like, ok := strings.Cut(line, "all flags of `"); ok {
					known[title] = append(known[title], known[strings.TrimSuffix(like, "`.")]...)
				}
			}
		}
	}
	return known
}

// commandName is a command in a heading, without its arguments.
var commandName = regexp.MustCompile(`\bccship(-server)?( [a-z][a-z-]*\b)*( |$)`)

// flagNames lists the flags that a line names.
func flagNames(line string) []string {
	names := regexp.MustCompile(`(?:^| )--?[a-z][a-z-]*`).FindAllString(strings.ReplaceAll(line, "`", " "), -1)
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// TestDocumentedCommands: each command line in the documentation names a command that exists, with flags it takes.
func TestDocumentedCommands(t *testing.T) {
	known := commandFlags(t)
	inline := regexp.MustCompile("`((?:bin/)?ccship(?:-server)? [^`]+)`")
	count := 0
	for _, page := range pages(t) {
		if base := filepath.Base(page); base == "CHANGELOG.md" {
			continue // tells of commands of their time
		}
		text := kit.Try(os.ReadFile(page)).Must(t)
		for line := range strings.Lines(string(text)) {
			var found []string
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				command, _, _ = strings.Cut(command, " # ")
				found = append(found, strings.TrimSpace(strings.TrimPrefix(command, "bin/")))
			}
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				found = append(found, strings.TrimPrefix(m[1], "bin/"))
			}
			for _, command := range found {
				if strings.HasPrefix(command, "ccship ") || strings.HasPrefix(command, "ccship-server ") {
					count++
					kit.Equal(t, fmt.Sprintf("%s: %q", page, command), notDocumented(command, known), "")
				}
			}
		}
	}
	kit.Check(t, count >= 50, "only %d command lines were found", count)
}

// notDocumented says what a command line names that does not exist; "" if it all does.
func notDocumented(line string, known map[string][]string) string {
	words := strings.Fields(line)
	program, name := words[0], words[0]
	for _, word := range words[1:] {
		if _, ok := known[name+" "+word]; !ok {
			break
		}
		name += " " + word
	}
	hasChildren := false
	for title := range known {
		hasChildren = hasChildren || strings.HasPrefix(title, name+" ")
	}
	rest := words[len(strings.Fields(name)):]
	if hasChildren && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && strings.ToLower(rest[0]) == rest[0] &&
		!strings.Contains(rest[0], "|") {
		return "no command " + rest[0]
	}
	for _, word := range rest {
		if word == "|" || word == ">" || word == "2>" || word == "--" {
			break
		}
		flag, _, _ := strings.Cut(strings.Trim(word, "[]"), "=")
		if word == "--" {
			break // words follow
		}
		if len(flag) > 1 && strings.HasPrefix(flag, "-") && !strings.ContainsAny(flag, "|…") &&
			!takes(known, name, flag) && !slices.Contains(known[program], flag) {
			return name + " has no flag " + flag
		}
	}
	return ""
}

// takes reports whether a command has a flag, or a group that it is in.
func takes(known map[string][]string, name, flag string) bool {
	for ; name != ""; name = name[:max(0, strings.LastIndexByte(name, ' '))] {
		if slices.Contains(known[name], flag) {
			return true
		}
	}
	return false
}

// TestDocumentedCommandsSees: what does not exist is found.
func TestDocumentedCommandsSees(t *testing.T) {
	known := map[string][]string{"p": {"--config"}, "p a": nil, "p a b": {"--x", "-f"}, "p c": {"--y"}}
	for line, wrong := range map[string]bool{
		"p a b --x 1": false, "p a b -f": false, "p a b --x=1 --config f": false, "p c file --y": false, "p c file > --z": false, "p c -- --z": false,
		"p z": true, "p a z": true, "p a b --y": true, "p c --x": true,
	} {
		kit.Equal(t, line, (notDocumented(line, known) != ""), wrong)
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	codeBlock    = regexp.MustCompile("(?s)```.*?```")
)

// anchors are the places of a page that links can name, as GitHub spells them.
func anchors(text string) []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		name := strings.ToLower(strings.TrimSpace(m[1]))
		name = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(name, "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}

// brokenLinks lists the links of a page that lead to no file or to no heading.
func brokenLinks(page, text string) []string {
	var broken []string
	for _, m := range markdownLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		path := page
		if target != "" {
			path = filepath.Join(filepath.Dir(page), filepath.FromSlash(target))
		}
		if _, err := os.Stat(path); err != nil {
			broken = append(broken, m[1])
			continue
		}
		if anchor == "" {
			continue
		}
		if aim, err := os.ReadFile(path); err != nil || !slices.Contains(anchors(string(aim)), anchor) {
			broken = append(broken, m[1])
		}
	}
	return broken
}

// TestDocumentLinks: every link of the documentation leads to a file of this tree, and to a heading in it.
func TestDocumentLinks(t *testing.T) {
	records := kit.Try(filepath.Glob(filepath.Join("..", "..", "docs", "internals", "adr", "*.md"))).Must(t)
	for _, page := range append(pages(t), records...) {
		text := kit.Try(os.ReadFile(page)).Must(t)
		for _, link := range brokenLinks(page, string(text)) {
			t.Errorf("%s: the link %q leads nowhere", page, link)
		}
	}
	page := filepath.Join("..", "..", "README.md")
	want := []string{"docs/no-such.md", "docs/privacy.md#no-such", "#no-such"}
	if got := brokenLinks(page, "# A b\n[a](docs/no-such.md) [b](docs/privacy.md#no-such) [c](docs/privacy.md#secrets) [d](#no-such)"); !slices.Equal(got, want) {
		t.Errorf("found %q broken, want %q", got, want)
	}
}

// TestDocumentsAreReachable: every page of docs is linked from another page.
func TestDocumentsAreReachable(t *testing.T) {
	linked := map[string]bool{}
	all := pages(t)
	for _, page := range all {
		text := kit.Try(os.ReadFile(page)).Must(t)
		for _, m := range markdownLink.FindAllStringSubmatch(string(text), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			linked[filepath.Join(filepath.Dir(page), filepath.FromSlash(target))] = true
		}
	}
	for _, page := range all {
		kit.Check(t, !strings.Contains(page, "docs") || linked[page], "no page links to %s", page)
	}
}
