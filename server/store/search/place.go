package search

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ccship/ccship/server"
)

// place is where a text stands in the order of a search, which shows those with the highest one first.
type place struct {
	time, stream, epoch, generation, line int64
	kind                                  string
}

func compare(a, b place) int {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.stream, b.stream), cmp.Compare(a.epoch, b.epoch),
		cmp.Compare(a.generation, b.generation), cmp.Compare(a.line, b.line), cmp.Compare(a.kind, b.kind))
}

// String returns the After of the page that follows the one ending there.
func (p place) String() string {
	return fmt.Sprintf("%d.%d.%d.%d.%d.%s", p.time, p.stream, p.epoch, p.generation, p.line, p.kind)
}

// timePlace returns the After of a page that begins with all that has a time.
func timePlace(at int64) string { return "t" + strconv.FormatInt(at, 10) }

// parsePlace reads an After; nil for the first page.
func parsePlace(after string) (*place, error) {
	if after == "" {
		return nil, nil //nolint:nilnil // the first page is after nothing
	}
	if rest, ok := strings.CutPrefix(after, "t"); ok {
		at, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			return nil, server.ErrBadPage
		}
		return &place{at, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, ""}, nil
	}
	parts := strings.SplitN(after, ".", 6)
	if len(parts) != 6 {
		return nil, server.ErrBadPage
	}
	var n [5]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return nil, server.ErrBadPage
		}
	}
	return &place{n[0], n[1], n[2], n[3], n[4], parts[5]}, nil
}
