package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
)

// ReplaceStrings replaces the contents of a record's string members of some names. Members of members are left alone,
// and so is every other byte. The line must be one that Scan called an Object; it is returned as it is if nothing
// changes, and is never changed itself.
func ReplaceStrings(line []byte, names []string, replace func(string) string) []byte {
	var out []byte
	copied := 0
	w := walker{line, skipSpace(line, 0) + 1}
	for {
		key, ok := w.key()
		if !ok {
			break
		}
		value := w.value(w.i)
		if len(value) == 0 {
			break
		}
		old := stringContents(value)
		if old == nil || !slices.Contains(names, Unquote(key)) {
			continue
		}
		text := Unquote(old)
		changed := replace(text)
		if changed == text {
			continue
		}
		out = append(out, line[copied:w.i-len(value)]...)
		out = append(out, quote(changed)...)
		copied = w.i
	}
	if out == nil {
		return line
	}
	return append(out, line[copied:]...)
}

// quote makes a JSON string, with only those escapes that JSON demands, as Claude Code writes it.
func quote(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string never fails
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
