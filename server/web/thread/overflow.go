package thread

import (
	"regexp"
	"strings"

	"github.com/ccship/ccship/server/web/page"
)

// Overflow is the full text of a tool's result that was too long for the transcript.
type Overflow struct {
	Name string // of its file
	URL  string // "" when it is not here
	Size int64
}

// overflowPath finds the file in what a result says instead of the text.
var overflowPath = regexp.MustCompile(`tool-results[/\\]([A-Za-z0-9_.-]{1,160}\.(?:txt|json|md|log))`)

// overflow notes that a result's full text lies in a file of its own.
func (b *Builder) overflow(t *Tool, text string) {
	_, rest, found := strings.Cut(text, "<persisted-output>")
	if !found || b.Inline || b.Public {
		return
	}
	head, _ := page.Cut(rest, 4<<10)
	if m := overflowPath.FindStringSubmatch(head); m != nil && m[1] != ".." {
		t.Overflow = &Overflow{Name: "tool-results/" + m[1]}
		b.Overflows = append(b.Overflows, t.Overflow)
	}
}
