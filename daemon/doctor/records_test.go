package doctor

import (
	"strings"
	"testing"
	"time"
)

// What transcripts have beyond what this version knows is counted, whatever surrounds it.
func TestUnknownRecords(t *testing.T) {
	w := newWorld(t)
	w.silent(w.examine(), "records")
	w.write(".claude/projects/-p/new.jsonl", `{"type":"novel","cwd":"/p"}`+"\n"+
		`{"type":"user","novelMember":1,"cwd":"/p","text":"`+strings.Repeat("x", 2*knownLine)+`"}`+"\n"+
		strings.Repeat(`{"type":"system","subtype":"novel"}`+"\n", 3)+"no object\n"+`{"type":"user","novelMember":1}`, time.Hour)
	w.wants(w.examine(), "records", Note, "system novel (3), member novelMember (1), type novel (1)", "newer")
}
