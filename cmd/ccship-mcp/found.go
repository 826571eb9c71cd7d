package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// found is what `ccship search --json` prints, as much of it as is shown.
type found struct {
	Sessions []struct {
		Session, User, Project, Title string
		Gone                          *string `json:"gone_session"`
		Missing                       []string
		Hits                          []struct {
			Line    int64
			Kind    string
			Current bool
			At      *time.Time
			Snippet []struct{ Text string }
		}
	}
	Total      int64
	Missing    []string
	Notes      []string
	Incomplete bool
}

// foundBytes is how long an answer is, in bytes: at most 1 000 tokens, with what stands before it.
const foundBytes = 2400

// foundText shows what a search found, each line with its session and number. Sessions without space are counted.
func foundText(out []byte) (string, error) {
	var f found
	if err := json.Unmarshal(out, &f); err != nil {
		return "", fmt.Errorf("read what was found: %w", err)
	}
	var b strings.Builder
	for _, note := range f.Notes {
		fmt.Fprintf(&b, "note: %s\n", cut(note, 200))
	}
	if len(f.Missing) > 0 {
		fmt.Fprintf(&b, "no session has all words; the best lacks: %s\n", cut(strings.Join(f.Missing, ", "), 200))
	}
	shown := 0
	for _, x := range f.Sessions {
		one := fmt.Sprintf("session %s (%s, %s) %q", cut(x.Session, 200), cut(x.User, 40), cut(x.Project, 40),
			cut(x.Title, 100))
		if x.Gone != nil {
			one = fmt.Sprintf("prompt history of %s; only prompts are left of %s", cut(x.User, 40), cut(*x.Gone, 40))
		}
		if len(x.Missing) > 0 {
			one += " without " + cut(strings.Join(x.Missing, ", "), 60)
		}
		for _, h := range x.Hits {
			text := ""
			for _, p := range h.Snippet {
				text += p.Text
			}
			one += fmt.Sprintf("\n  line %d, %s", h.Line+1, cut(h.Kind, 20))
			if h.At != nil {
				one += h.At.Format(", 2006-01-02")
			}
			if !h.Current {
				one += ", rewound since"
			}
			one += ": " + cut(text, 220)
		}
		if b.Len()+len(one) > foundBytes && shown > 0 {
			break
		}
		b.WriteString(cut(one, foundBytes) + "\n")
		shown++
	}
	if more := f.Total - int64(shown); more > 0 || f.Incomplete {
		fmt.Fprintf(&b, "%d further sessions, or more: narrow the text, for example with project: or after:\n", max(more, 0))
	}
	return cmp.Or(strings.TrimSpace(b.String()), "nothing found"), nil
}

// cut shortens a text to so many bytes, and to one line unless it is long.
func cut(text string, most int) string {
	if most < foundBytes {
		text = strings.Join(strings.Fields(text), " ")
	}
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
