package proof

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// names is a machine whose changes of name are counted.
type names struct{ changes int }

func (n *names) Former() []string { return nil }
func (n *names) Change() error    { n.changes++; return nil }

// TestOwnName: the first time that another daemon took over this one takes over again; the second time within an hour
// both are alive, and this one changes its name. A comparison that is repeated is not a second time.
func TestOwnName(t *testing.T) {
	n := &names{}
	r := NewReconciler(ReconcilerDeps{Machine: n, Log: slog.New(slog.DiscardHandler)})
	why := protocol.Refusal{Code: protocol.CodeWriterReplaced}
	for range 3 { // repeated, since it failed
		w, err := r.writer("dest", why)
		kit.Require(t, w != "" && err == nil && n.changes == 0, "writer %q, %v, %d changes", w, err, n.changes)
	}
	r.replaced["dest"] = time.Now() // it succeeded
	_, err := r.writer("dest", why)
	kit.Check(t, errors.Is(err, errNewName) && n.changes == 1, "the second time: %v, %d changes", err, n.changes)
	_, err = r.writer("other", why)
	kit.Check(t, err == nil && n.changes == 1, "another server: %v, %d changes", err, n.changes)
	r.replaced["dest"] = time.Now().Add(-2 * memoryOf)
	_, err = r.writer("dest", why)
	kit.Check(t, err == nil && n.changes == 1, "hours later: %v, %d changes", err, n.changes)
}

// TestNewestRefusalCounts: a comparison that failed does not displace what was asked for meanwhile.
func TestNewestRefusalCounts(t *testing.T) {
	r := NewReconciler(ReconcilerDeps{Log: slog.New(slog.DiscardHandler)})
	r.OutOfStep("dest", protocol.Refusal{Code: protocol.CodeWriterReplaced})
	r.OutOfStep("dest", protocol.Refusal{Code: protocol.CodeOtherBytes, Stream: 7})
	r.again(t.Context(), "dest", protocol.Refusal{Code: protocol.CodeStoreBehind}, errors.New("no answer"))
	got := r.servers["dest"].Code
	kit.Check(t, got == protocol.CodeWriterReplaced && r.streams["dest"][7], "to be compared: %q, streams %v", got, r.streams)
}

// TestJudge: which ledger of a server is what this daemon expects, and what else happened.
func TestJudge(t *testing.T) {
	before := protocol.Ledger{Store: "s", Count: 5, Writer: "before"}
	mine := protocol.Ledger{Store: "s", Count: 5, Writer: "me"}
	known := mine
	known.Token = "mine"
	doubted := mine
	doubted.Doubt = true
	tests := []struct {
		name   string
		known  protocol.Ledger
		store  string
		count  int64
		writer string
		want   string
		since  string
	}{
		{"nothing happened", before, "s", 5, "before", "", ""},
		{"own write on its way", before, "s", 6, "me", "", ""},
		{"own writes", mine, "s", 7, "me", "", ""},
		{"another database", before, "t", 5, "before", protocol.CodeOtherStore, ""},
		{"an older copy", mine, "s", 4, "me", protocol.CodeStoreBehind, ""},
		{"another daemon wrote", before, "s", 6, "other", protocol.CodeWriterBehind, ""},
		{"as many writes, but others", before, "s", 5, "other", protocol.CodeWriterBehind, ""},
		{"counts that agree prove nothing", doubted, "s", 5, "me", protocol.CodeStoreBehind, ""},
		{"another daemon took over", mine, "s", 6, "other", protocol.CodeWriterReplaced, ""},
		{"as many writes, of another history", known, "s", 5, "me", protocol.CodeStoreBehind, "other"},
		{"more writes, after another history", known, "s", 7, "me", protocol.CodeStoreBehind, "other"},
		{"the same history", known, "s", 7, "me", "", "mine"},
		{"a write that was long ago", known, "s", 99, "me", "", ""},
	}
	for _, test := range tests {
		at := protocol.WriteLedger{Store: test.store, Count: test.count, Writer: test.writer, Since: test.since}
		kit.Equal(t, test.name, judge(&at, &test.known, "me"), test.want)
	}
}

// stands for lines: each letter is one line's content, a blank is one that is not there.
func hashesOf(lines string) (hashes []*string) {
	for _, l := range lines {
		if l == ' ' {
			hashes = append(hashes, nil)
			continue
		}
		hash := LineHash([]byte(string(l)))
		hashes = append(hashes, &hash)
	}
	return hashes
}

// TestEarlier tells what was damaged on the server from what was rewound since.
func TestEarlier(t *testing.T) {
	line := func(first, last int64) []control.Range { return []control.Range{{First: first, Last: last}} }
	for name, c := range map[string]struct {
		disk, server string
		later        []protocol.ViewDigest
		want         earlier
	}{
		"the same":          {disk: "abcde", server: "abcde"},
		"the beginning":     {disk: "abcde", server: "abc"},
		"rewound since":     {disk: "abcde", server: "abxyz", want: earlier{rewound: true}},
		"shorter now":       {disk: "abc", server: "abcde", want: earlier{rewound: true}},
		"a line is damaged": {disk: "abcde", server: "axcde", want: earlier{lineDiff: lineDiff{differ: line(1, 1)}}},
		"lines are lost":    {disk: "abcde", server: "a  de", want: earlier{lineDiff: lineDiff{missing: line(1, 2)}}},
		"the end is lost":   {disk: "abcde", server: "abcd ", want: earlier{lineDiff: lineDiff{missing: line(4, 4)}}},
		"a line is excused": {disk: "abCde", server: "ab de"},
		"lost and rewound":  {disk: "abcde", server: "abx z", want: earlier{rewound: true}},
		"damaged, rewound":  {disk: "abcde", server: "xbyyy", want: earlier{rewound: true, lineDiff: lineDiff{differ: line(0, 0)}}},
		"replaced by a later": {disk: "abcde", server: "axcde", want: earlier{replaced: true},
			later: []protocol.ViewDigest{{Generation: 4, RewoundTo: 1}}},
		"a later one begins behind": {disk: "abcde", server: "axcde", want: earlier{lineDiff: lineDiff{differ: line(1, 1)}},
			later: []protocol.ViewDigest{{Generation: 4, RewoundTo: 2}}},
		"an earlier one": {disk: "abcde", server: "axcde", want: earlier{lineDiff: lineDiff{differ: line(1, 1)}},
			later: []protocol.ViewDigest{{Generation: 2}}},
	} {
		var disk []diskHash
		for _, l := range c.disk {
			disk = append(disk, diskHash{sent: LineHash([]byte(string(l))), excused: l < 'a'})
		}
		end := int64(len(c.server))
		got := kit.Try(compareWithDisk(t.Context(), disk, &Hashes{page: hashesOf(c.server)}, end)).Must(t)
		got.dropReplaced(3, c.later)
		diff := cmp.Diff(&c.want, got, cmp.AllowUnexported(earlier{}, lineDiff{}))
		kit.Check(t, diff == "", "%s (-want +got):\n%s", name, diff)
	}
}

// A session is found right after the daemon's start, too, while the tailer has not loaded what it knows.
func TestTrackedBeforeTheTailerRuns(t *testing.T) {
	db := kit.Try(state.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db")})).Must(t)
	t.Cleanup(func() { kit.Should(t, db.Close()) })
	file := tail.File{ID: 1, Path: "/r/p/one.jsonl", Root: "/r", Name: "one", Copy: 1}
	kit.Must(t, db.Files.Update(t.Context(), []tail.Tracked{{File: file}}))
	f := &Forgetter{State: db, Files: tail.New(tail.Config{Roots: []tail.Root{{Dir: t.TempDir()}}}, db.Files, nil)}
	got, err := f.tracked(t.Context())
	kit.Check(t, err == nil && len(got) == 1 && got[0].File.Path == file.Path, "%+v, %v; want %s", got, err, file.Path)
}

// TestStillRefused forgets a refusal once the line was rewound: what is there now is another line.
func TestStillRefused(t *testing.T) {
	dead := map[int64]uint32{2: 0, 5: 1}
	generations := []protocol.ViewDigest{{Generation: 0}, {Generation: 1, RewoundTo: 4}, {Generation: 2, RewoundTo: 5}}
	for now, want := range []map[int64]bool{{2: true, 5: true}, {2: true, 5: true}, {2: true}} {
		diff := cmp.Diff(want, stillRefused(dead, generations, uint32(now)))
		kit.Check(t, diff == "", "generation %d (-want +got):\n%s", now, diff)
	}
}
