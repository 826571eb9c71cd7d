package doctor

import (
	"strings"
	"testing"
	"time"
)

// TestUnreadLines: transcripts with lines that hold no record are named, with what these lines are.
func TestUnreadLines(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/projects/-p/bom.jsonl", "\xef\xbb\xbf"+`{"type":"mode"}`+"\n", time.Hour)
	w.silent(w.examine(), "records")
	w.write(".claude/projects/-p/indented.jsonl", "{\n  \"type\": \"mode\"\n}\n"+`{"type":"mode"}`+"\n", time.Hour)
	w.write(".claude/projects/-p/torn.jsonl", `{"type":"mo`+"\n"+`{"type":"unfinished`, 2*time.Hour)
	w.wants(w.examine(), "records", Note, "indented.jsonl (3 lines: JSON, but no whole record), ", "jq")
	w.wants(w.examine(), "records", Note, "2 transcripts have lines that are delivered as they are, and not read: ", "jq")
	w.wants(w.examine(), "records", Note, "torn.jsonl (1 line: damaged line)", "jq")
}

// What transcripts have beyond what this version knows is counted, whatever surrounds it.
func TestUnknownRecords(t *testing.T) {
	w := newWorld(t)
	w.silent(w.examine(), "records")
	w.write(".claude/projects/-p/new.jsonl", `{"type":"novel","cwd":"/p"}`+"\n"+
		`{"type":"user","novelMember":1,"cwd":"/p","text":"`+strings.Repeat("x", 2*knownLine)+`"}`+"\n"+
		strings.Repeat(`{"type":"system","subtype":"novel"}`+"\n", 3)+"{}{}\n"+`{"type":"user","novelMember":1}`, time.Hour)
	w.wants(w.examine(), "records", Note, "system novel (3), member novelMember (1), type novel (1)", "newer")
}
