package derive

import (
	"strings"

	"github.com/ccship/ccship/transcript"
)

// origin says which session a transcript is, by its records: see server.Summary.
type origin struct {
	name string
	copy bool
}

// add adds a record of a stream. A file that continues another session begins with that one's records, and has its own
// after them: it is no copy.
func (o *origin) add(stream string, r *transcript.Record) {
	switch {
	case r.UUID == "" || r.SessionID == "":
	case o.name == "":
		o.name, o.copy = r.SessionID+"/"+r.UUID, r.SessionID != stream
	case o.copy && r.SessionID == stream:
		_, first, _ := strings.Cut(o.name, "/")
		o.name, o.copy = stream+"/"+first, false
	}
}
