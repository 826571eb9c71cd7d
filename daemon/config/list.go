package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/sys"
)

// ListEdit is the result of EditList. Values are as written in the file.
type ListEdit struct {
	Values  []string // of the list now
	Added   []string
	Removed []string
	Missing []string // values to remove that are not in the list
}

// EditList adds values to a list in a configuration file and removes others. Values with the same meaning are equal.
// Everything else in the file stays, including comments between the values. A list that does not change is not written.
// For errors see WriteOption.
func EditList(path, name string, add, remove []string, env Env) (ListEdit, error) {
	o, ok := LookupOption(name)
	if !ok || !o.List() {
		return ListEdit{}, unknownOption(name, "")
	}
	p, err := sys.FindPlaces(env)
	if err != nil {
		return ListEdit{}, err
	}
	for _, text := range slices.Concat(add, remove) {
		if _, err := parse(o, text, p); err != nil {
			return ListEdit{}, setting{provenance: provenance{FromFlag, name}}.blame(o, err)
		}
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ListEdit{}, fmt.Errorf("read configuration: %w", err)
	}
	settings, err := parseFile(path, old)
	if err != nil {
		return ListEdit{}, err
	}
	e := ListEdit{Values: slices.Clone(settings[name].texts)}
	e.apply(add, remove, func(a, b string) bool { return sameValue(o, a, b, p) })
	if len(e.Added)+len(e.Removed) == 0 {
		return e, nil
	}
	text := e.rewrite(string(old), o)
	if err := replaceFile(path, []byte(text)); err != nil {
		return e, err
	}
	return e, nil
}

// sameValue reports whether two texts mean the same.
func sameValue(o Option, a, b string, p sys.Places) bool {
	x, errX := parse(o, a, p)
	y, errY := parse(o, b, p)
	return errX == nil && errY == nil && x == y
}

func (e *ListEdit) apply(add, remove []string, same func(a, b string) bool) {
	for _, text := range remove {
		is := func(v string) bool { return same(v, text) }
		if i := slices.IndexFunc(e.Values, is); i < 0 {
			e.Missing = append(e.Missing, text)
		} else {
			e.Removed = append(e.Removed, e.Values[i])
			e.Values = slices.DeleteFunc(e.Values, is)
		}
	}
	for _, text := range add {
		if !slices.ContainsFunc(e.Values, func(v string) bool { return same(v, text) }) {
			e.Added, e.Values = append(e.Added, text), append(e.Values, text)
		}
	}
}

// rewrite returns the file's text with the new list: edited in place if each value has its own line, otherwise
// rewritten.
func (e *ListEdit) rewrite(text string, o Option) string {
	lines := strings.SplitAfter(text, "\n")
	if from, to, found := spanOf(lines, o.Name); found && to-from > 2 {
		edited := strings.Join(slices.Concat(lines[:from], e.lines(lines[from:to]), lines[to:]), "")
		if settings, err := parseFile("", []byte(edited)); err == nil && slices.Equal(settings[o.Name].texts, e.Values) {
			return edited
		}
	}
	return replaceKey(text, o.Name, o.Name+" = "+tomlList(e.Values)+"\n")
}

// lines edits a list that is written over several lines.
func (e *ListEdit) lines(list []string) []string {
	item := regexp.MustCompile(`^([ \t]*)("(?:[^"\\]|\\.)*"|'[^']*')[ \t]*(,?)[ \t]*(#.*)?\r?\n$`)
	out, last, indent := []string{}, -1, "  "
	for _, line := range list {
		m := item.FindStringSubmatch(line)
		if m == nil {
			out = append(out, line)
			continue
		}
		var v struct{ K string }
		if _, err := toml.Decode("K = "+m[2], &v); err == nil && slices.Contains(e.Removed, v.K) {
			continue
		}
		indent, last = m[1], len(out)
		out = append(out, line)
	}
	if last >= 0 {
		if m := item.FindStringSubmatchIndex(out[last]); m[6] == m[7] { // without its comma
			out[last] = out[last][:m[5]] + "," + out[last][m[5]:]
		}
	}
	var added []string
	for _, text := range e.Added {
		added = append(added, indent+tomlString(text)+",\n")
	}
	return slices.Insert(out, max(last+1, 1), added...)
}

// FolderPattern returns the pattern of exclude_projects that matches one folder, whatever characters its name has.
func FolderPattern(dir string) string { return project.Literal(dir) }
