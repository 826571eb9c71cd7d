package tail

// Cursor is the position where reading of a file stopped. Comparable: equal cursors are the same position in the same
// bytes.
type Cursor struct {
	Offset     int64  // bytes read; always the start of a line
	Line       int64  // lines read, blank ones counted; the 0-based number of the next line
	Generation uint32 // raised by each rewind, and when all is read again
	Anchor     uint64 // hash of the up to AnchorSize bytes before Offset; 0 at Offset 0
	Mark       int64  // offset of the last Mark at or before Offset; 0 when there is none
	Segment    uint64 // hash of the bytes from Mark to Offset
}

// AnchorSize is the largest number of bytes that an Anchor covers.
const AnchorSize = 4 << 10

// Mark is one sparse prefix hash: proof of the bytes since the Mark before it, at a line start. Marks of a file are
// append-only, ascending, never beyond its cursor, and at most 128 KiB apart unless a single line is longer.
type Mark struct {
	Offset int64
	Line   int64
	Hash   uint64 // of the bytes from the previous Mark's Offset (0 for the first) to Offset
}
