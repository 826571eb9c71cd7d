package daemon

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func (w *world) deep() control.VerifyReport {
	w.t.Helper()
	return kit.Try(w.client.Verify(w.t.Context(), control.VerifyRequest{Timeout: patience.String(), Deep: true}, nil)).Must(w.t)
}

// long are records that make several marks.
func long(from, to int) string {
	return strings.ReplaceAll(records("/home/kim/shop", from, to), `{"type"`, `{"pad":"`+strings.Repeat("x", 9000)+`","type"`)
}

// rewoundWorld is a session with three generations, and one that is gone.
func rewoundWorld(t *testing.T) *world {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", long(0, 60))
	gone := w.write("-p/"+sessionB+".jsonl", long(0, 30))
	w.deliver()
	for _, text := range []string{long(0, 40) + long(100, 130), long(0, 10) + long(200, 203)} {
		w.rewrite("-p/"+sessionA+".jsonl", text)
		w.sync()
	}
	kit.Must(t, os.Remove(gone))
	w.sync()
	return w
}

// damage is something done to what a server keeps, and what a deep verify is to say of it.
type damage struct {
	do   func(streams map[string]map[uint32]*memGeneration)
	want []control.FileDifference
}

func damages() map[string]damage {
	return map[string]damage{
		"whole": {func(map[string]map[uint32]*memGeneration) {}, nil},
		"a byte of a line that a rewind took out": {
			func(s map[string]map[uint32]*memGeneration) {
				s[sessionA][0].lines[55] = bytes.Replace(s[sessionA][0].lines[55], []byte("user"), []byte("uses"), 1)
			},
			[]control.FileDifference{{SessionID: sessionA, Past: true, Generation: 0, Differ: []control.Range{{First: 55, Last: 55}}, Detail: "somewhere in these lines, by the hashes taken when they were read"}},
		},
		"a line of an older generation": {
			func(s map[string]map[uint32]*memGeneration) { delete(s[sessionA][1].lines, 60) },
			[]control.FileDifference{{SessionID: sessionA, Past: true, Generation: 1, Missing: []control.Range{{First: 60, Last: 60}}}},
		},
		"a whole generation": {
			func(s map[string]map[uint32]*memGeneration) { delete(s[sessionA], 1) },
			[]control.FileDifference{{SessionID: sessionA, Past: true, Generation: 1, Missing: []control.Range{{First: 0, Last: 69}}, Detail: "the server does not have this generation"}},
		},
		"the end of a transcript that is gone": {
			func(s map[string]map[uint32]*memGeneration) {
				s[sessionB][0].end = 29
				delete(s[sessionB][0].lines, 29)
			},
			[]control.FileDifference{{SessionID: sessionB, Past: true, Generation: 0, Missing: []control.Range{{First: 29, Last: 29}}}},
		},
		"a transcript that is gone": {
			func(s map[string]map[uint32]*memGeneration) { delete(s, sessionB) },
			[]control.FileDifference{{SessionID: sessionB, Past: true, Generation: 0, Missing: []control.Range{{First: 0, Last: 29}}, Detail: "the server does not have this generation"}},
		},
	}
}

// TestDeep proves older generations and transcripts that are gone, and names what was damaged in them.
func TestDeep(t *testing.T) {
	for name, c := range damages() {
		t.Run(name, func(t *testing.T) {
			w := rewoundWorld(t)
			w.server.with(func() { c.do(w.server.streams) })
			v := w.verify()
			kit.Check(t, v.Equal, "verify of what is on disk: %+v", v.Differences)
			r := w.deep()
			for i := range r.Differences {
				d := &r.Differences[i]
				d.Path = ""
				for j := range d.Differ { // as near as the marks are
					if l := &d.Differ[j]; l.First > 55 || l.Last < 55 || l.Last-l.First > 20 {
						t.Errorf("lines %+v", *l)
					} else {
						*l = control.Range{First: 55, Last: 55}
					}
				}
			}
			diff := cmp.Diff(c.want, r.Differences)
			kit.Check(t, diff == "" && r.Equal == (c.want == nil), "equal %v (-want +got):\n%s", r.Equal, diff)
			kit.Check(t, c.want != nil || r.Deep.Past.Generations == 2 && r.Deep.Past.Lines == 130 &&
				r.Deep.Gone.Generations == 1 && r.Deep.Gone.Lines == 30 && r.Deep.Stored.Generations == 0,
				"report %+v", r.Deep)
		})
	}
}

// TestDeepIsHonest counts what it cannot prove: generations of a state that was lost, and those with lines left out.
func TestDeepIsHonest(t *testing.T) {
	w := newWorld(t)
	w.cfg.ExcludeTypes = []string{"noise"}
	w.startWith("-p/"+sessionA+".jsonl", long(0, 5)+"{\"type\":\"noise\"}\n"+long(5, 9))
	w.rewrite("-p/"+sessionA+".jsonl", long(0, 3))
	w.sync()
	r := w.deep()
	want := []control.StoredReason{{Why: "some of its lines were left out or refused", Generations: 1}}
	kit.Check(t, r.Equal && r.Deep.Past.Generations == 0 && slices.Equal(r.Deep.Why, want) && r.Deep.Stored.Lines == 9,
		"report %+v, differences %+v", r.Deep, r.Differences)
	w.server.with(func() { w.server.epoch = "another" })
	if r = w.deep(); r.Equal || len(r.Deep.Why) != 1 || r.Deep.Why[0].Why != "of an earlier state file" {
		t.Errorf("with the generations under another epoch: %+v, %+v", r.Deep, r.Differences)
	}
}

// TestVerifyAsksAtOnce asks about many transcripts in few requests, and one by one where the server knows no better.
func TestVerifyAsksAtOnce(t *testing.T) {
	const askAtOnce = 200 // in a request
	w := newWorld(t)
	const files = askAtOnce + 7
	for i := range files {
		w.write("-p/"+sessionA[:30]+string(rune('a'+i/26))+string(rune('a'+i%26))+".jsonl", records("/home/kim/shop", 0, 2))
	}
	w.deliver()
	r := w.verify()
	kit.Check(t, r.Equal && r.Files == files && r.Proven, "equal %v, %d files, %+v", r.Equal, r.Files, r.Differences)
	kit.Check(t, slices.Equal(w.server.asks, []int{askAtOnce, 7}), "asked about %v transcripts at a time", w.server.asks)
}
