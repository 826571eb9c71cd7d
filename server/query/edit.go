package query

import (
	"slices"
	"strings"
	"unicode"
)

// With is a search text with a filter added, once.
func With(text, name, value string) string {
	if slices.ContainsFunc(split(text), func(t token) bool {
		return t.name == name && slices.Contains(t.values(),
			value)
	}) {
		return text
	}
	return strings.TrimSpace(strings.TrimSpace(text) + " " + Format(name, value))
}

// Without is a search text without a filter; with value "" it is one without any of that name.
func Without(text, name, value string) string {
	var out []string
	for _, t := range split(text) {
		if t.name == name && !t.not {
			rest := slices.DeleteFunc(t.values(), func(v string) bool { return value == "" || v == value })
			if len(rest) == 0 {
				continue
			}
			t.raw = Format(name, strings.Join(rest, ","))
		}
		out = append(out, t.raw)
	}
	return strings.Join(out, " ")
}

// Format writes a filter as a search text has it.
func Format(name, value string) string {
	value = strings.ReplaceAll(value, `"`, "")
	if !startsValue(value) || strings.IndexFunc(value, unicode.IsSpace) >= 0 {
		value = `"` + value + `"`
	}
	return name + ":" + value
}
