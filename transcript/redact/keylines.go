package redact

import (
	"bytes"
	"regexp"
	"sync"
)

// keyLines finds the lines of private keys that are elements of one array each, as tools report the lines of a patch.
type keyLines struct {
	array int     // which one; see walker.opened
	open  bool    // a key has begun, and not ended
	lines []Range // what belongs to a key if its end follows
}

const (
	wholeLine = 60 // a line of a key is as long, but for the last one
	keyRule   = "private-key"
)

var (
	keyLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\A[+ -]?[\s>|]*((?:[A-Za-z0-9+/]|\\/){4,90}={0,2})(?:\s|\\[nr])*\z`)
	})
	// keyHeader is what else may be between the lines of a key: nothing, a header, a line that is masked.
	keyHeader = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\A[+ -]?\s*(?:[A-Za-z-]+: [^"]{0,80}|\[[a-z-]*:[a-z2-7]{8,26}\.*\]|\**)?(?:\s|\\[nr])*\z`)
	})
)

var keyEdges = [][]byte{[]byte("PRIVATE KEY-----"), []byte("PRIVATE KEY BLOCK-----")}

// isKeyEdge reports whether a text has the first or the last line of a private key.
func isKeyEdge(text []byte) bool {
	return bytes.Contains(text, keyEdges[0]) || bytes.Contains(text, keyEdges[1])
}

// isKeyEdge reports whether a hit is part of such a line. The rules for keys keep all of these hits.
func (m *Masker) isKeyEdge(h hit) bool { return isKeyEdge([]byte(m.search.literals[h.literal].text)) }

// add appends to ranges what the walker's string shows to be lines of a key.
func (k *keyLines) add(ranges []Range, w *walker) []Range {
	if w.name != "" || w.opened != k.array {
		*k = keyLines{array: w.opened, lines: k.lines[:0]}
	}
	if w.name != "" {
		return ranges
	}
	text := w.line[w.start:w.end]
	if isKeyEdge(text) {
		begin, end := bytes.LastIndex(text, []byte("-----BEGIN ")), bytes.LastIndex(text, []byte("-----END "))
		if end >= 0 && !k.open {
			ranges = append(ranges, k.lines...)
		}
		k.open, k.lines = begin > end, k.lines[:0]
		return ranges
	}
	loc := keyLine().FindSubmatchIndex(text)
	switch {
	case loc == nil && keyHeader().Match(text):
		return ranges
	case loc == nil || !k.open && len(k.lines) == 0 && loc[3]-loc[2] < wholeLine:
		k.open, k.lines = false, k.lines[:0]
		return ranges
	}
	r := Range{Start: w.start + loc[2], End: w.start + loc[3], Rule: keyRule}
	if k.open {
		return append(ranges, r)
	}
	k.lines = append(k.lines, r)
	return ranges
}
