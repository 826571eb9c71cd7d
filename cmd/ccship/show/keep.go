package show

import (
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/protocol"
)

// ShareLinks lists links to sessions, one a line.
func (v View) ShareLinks(links []protocol.ShareLink) string {
	if len(links) == 0 {
		return "no links\n"
	}
	rows := make([][]string, len(links))
	for i, l := range links {
		rows[i] = []string{strconv.FormatInt(l.ID, 10), "until " + l.Until.In(v.Zone).Format(time.DateTime),
			term.Printable(l.By), l.SessionID[:min(len(l.SessionID), 8)],
			term.Cut(term.Printable(strings.Join(strings.Fields(l.Title), " ")), 100)}
	}
	return v.table("><<<<", rows)
}
