package proof

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

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
