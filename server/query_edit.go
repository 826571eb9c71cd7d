package server

import (
	"slices"
	"strings"
	"unicode"
)

// WithFilter returns a search text with a filter added, once.
func WithFilter(text, name, value string) string {
	if slices.ContainsFunc(splitQuery(text), func(t queryToken) bool {
		return t.name == name && slices.Contains(t.values(),
			value)
	}) {
		return text
	}
	return strings.TrimSpace(strings.TrimSpace(text) + " " + FormatFilter(name, value))
}

// WithoutFilter returns a search text without a filter; with value "" it is one without any of that name.
func WithoutFilter(text, name, value string) string {
	var out []string
	for _, t := range splitQuery(text) {
		if t.name == name && !t.not {
			rest := slices.DeleteFunc(t.values(), func(v string) bool { return value == "" || v == value })
			if len(rest) == 0 {
				continue
			}
			t.raw = FormatFilter(name, strings.Join(rest, ","))
		}
		out = append(out, t.raw)
	}
	return strings.Join(out, " ")
}

// FormatFilter writes a filter as a search text has it.
func FormatFilter(name, value string) string {
	value = strings.ReplaceAll(value, `"`, "")
	if !startsValue(value) || strings.IndexFunc(value, unicode.IsSpace) >= 0 {
		value = `"` + value + `"`
	}
	return name + ":" + value
}
