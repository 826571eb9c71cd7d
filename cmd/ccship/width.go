package main

import "unicode"

// columns is how many columns of a terminal s takes.
func columns(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// columnsOf is how many columns a character takes: two in the scripts of East Asia and for pictures, none for what is
// drawn over the one before.
func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r >= 0x1160 && r <= 0x11ff, unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0 // the former: the middle and the end of a syllable that is written in pieces
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xa960 && r <= 0xa97f,
		r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// fitting is as much of the beginning of s as fits into so many columns.
func fitting(s string, width int) string {
	used := 0
	for i, r := range s {
		if used += columnsOf(r); used > width {
			return s[:i]
		}
	}
	return s
}
