package show

import (
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// Census says what is on this disk; "" where nobody has counted.
func (v View) Census(c *control.Census) string {
	if c == nil || c.Sessions == 0 {
		return ""
	}
	text := "on this disk: " + amount.Counted(int64(c.Sessions), "session", "sessions") + " and " +
		amount.Counted(int64(c.Agents), "agent", "agents") + " of " +
		amount.Counted(int64(c.Projects), "project", "projects") + ", " + amount.Size(c.Bytes)
	var largest []string
	for _, p := range c.Largest[:min(len(c.Largest), 3)] {
		largest = append(largest, term.Printable(p.Project)+" ("+amount.Size(p.Bytes)+")")
	}
	if len(largest) > 1 {
		text += "; most of it in " + strings.Join(largest, ", ")
	}
	return term.Hang(text, v.Columns, 2) + "\n"
}
