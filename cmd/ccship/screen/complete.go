package screen

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// names are the projects and machines that were in a list, those of the latest first.
type names struct{ projects, machines []string }

// see remembers the names in a list.
func (n *names) see(rows []row) {
	var seen names
	for _, r := range rows {
		seen.projects = append(seen.projects, r.Project)
		seen.machines = append(seen.machines, cmp.Or(r.Host, r.Machine))
	}
	n.projects = unique(append(seen.projects, n.projects...))
	n.machines = unique(append(seen.machines, n.machines...))
}

// unique returns the names in their order, each once.
func unique(all []string) []string {
	var out []string
	for _, name := range all {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// values returns those that a filter may have, as far as they are known.
func (n *names) values(filter string) []string {
	switch filter {
	case "project":
		return n.projects
	case "machine":
		return n.machines
	case "kind":
		return []string{"prompt", "answer", "tool", "result", "error", "edit", "read", "command", "thinking", "message",
			"title"}
	case "is":
		return []string{"error", "starred", "lost", "running"}
	}
	return nil
}

// complete completes the value of the filter before the cursor, and reports whether it did.
func (m *model) complete() bool {
	before := string(m.box.text[:m.box.at])
	start := strings.LastIndexFunc(before, unicode.IsSpace) + 1
	filter, begun, found := strings.Cut(strings.TrimPrefix(before[start:], "-"), ":")
	if !found {
		return false
	}
	values := m.known.values(strings.ToLower(filter))
	if slices.Contains(values, begun) {
		return false
	}
	for _, v := range values {
		if strings.HasPrefix(strings.ToLower(v), strings.ToLower(begun)) {
			m.box.remove(m.box.at-len([]rune(begun)), m.box.at)
			m.box.insert(named(v))
			return true
		}
	}
	return false
}
