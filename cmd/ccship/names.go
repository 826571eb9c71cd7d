package main

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// names replaces names of people, machines, servers, projects and folders by words. The same name becomes the same word
// in all parts of an archive, so that a reader sees what belongs together.
type names struct {
	known []known
	paths map[string]string
}

type known struct {
	name *regexp.Regexp
	word string
}

// shortest is how long a name is at least that is replaced wherever it stands: shorter ones are in other words too.
const shortest = 3

// newNames hides a home folder, a user and a machine; each may be empty. servers are URLs; their hosts are hidden
// unless they are this machine.
func newNames(home, user, machine string, servers []string) *names {
	n := &names{paths: map[string]string{}}
	if len(home) > 1 {
		n.add(home, "~")
		n.add(strings.NewReplacer("/", "-", ".", "-", "_", "-").Replace(home), "-home") // as Claude Code names folders
	}
	for i, server := range servers {
		u, err := url.Parse(server)
		if err != nil || u.Hostname() == "" || u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback() {
			continue
		}
		n.add(u.Hostname(), fmt.Sprintf("server-%d.invalid", i+1))
	}
	n.addWord(machine, "[machine]")
	n.addWord(user, "[user]")
	return n
}

func (n *names) add(name, word string) {
	n.known = append(n.known, known{regexp.MustCompile(regexp.QuoteMeta(name)), word})
}

// addWord hides a name where it is a word of its own.
func (n *names) addWord(name, word string) {
	if len(name) >= shortest && name != "root" {
		n.known = append(n.known, known{regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`), word})
	}
}

// anyPath finds paths of files, and URLs, which stay as they are; before them is what ends another word.
var anyPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?m)(^|[^\w~/\\.])([a-z]+://[^\s"'<>]*|(?:~|[A-Za-z]:)?(?:[/\\]+[^\s/\\"'<>|:;,()\x60*?]+)+[/\\]?)`)
})

// session is a file of Claude Code's that is named by a session, which names nobody.
var session = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f-]{27}(\.jsonl)?$|^agent-[0-9a-z-]+\.jsonl$`)
})

// ours returns the folders whose names say nothing about a person.
func ours() []string {
	return []string{
		"~/.config/ccship", "~/.local/state/ccship", "~/.local/share/ccship", "~/.local/bin", "~/.config/systemd",
		"~/.claude", "~/Library", "/usr", "/bin", "/sbin", "/opt/homebrew", "/etc", "/proc", "/sys", "/run", "/var/run",
		"/v1", "/api", "/metrics", "/debug",
	}
}

// From returns a text without the names.
func (n *names) From(text string) string {
	for _, k := range n.known {
		text = k.name.ReplaceAllLiteralString(text, k.word)
	}
	var b strings.Builder
	end := 0
	for _, m := range anyPath().FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[end:m[4]])
		b.WriteString(n.path(text[m[4]:m[5]]))
		end = m[5]
	}
	return b.String() + text[end:]
}

// path hides the folders of a path that may be a project's.
func (n *names) path(p string) string {
	if strings.Contains(p, "://") {
		return p
	}
	before, project, isProject := strings.Cut(p, "/.claude/projects/")
	if isProject {
		folder, rest, _ := strings.Cut(project, "/")
		if rest = keepSessions(rest); rest != "" {
			rest = "/" + rest
		}
		return before + "/.claude/projects/" + n.word(folder, "project") + rest
	}
	if slices.ContainsFunc(ours(), func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") }) {
		return p
	}
	return n.word(p, "path")
}

// keepSessions keeps of a path below a project what is named by a session, and hides other names.
func keepSessions(rest string) string {
	if rest == "" {
		return ""
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		if part != "" && part != "subagents" && part != "tool-results" && !session().MatchString(part) {
			parts[i] = "[name]"
		}
	}
	return strings.Join(parts, "/")
}

// word returns a word for a name, the same each time.
func (n *names) word(name, kind string) string {
	key := kind + name
	if n.paths[key] == "" {
		n.paths[key] = fmt.Sprintf("[%s %d]", kind, len(n.paths)+1)
	}
	return n.paths[key]
}
