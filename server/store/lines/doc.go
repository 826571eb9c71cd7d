// Package lines keeps the lines of transcripts: most are packed into blocks, and those that came last are hot, rows of
// their own. It reads both as one, compares lines that come again, and packs hot ones later, in the same way in both
// databases. It knows no driver and not when lines are packed.
//
// A hot row is in force where a block has the line too: of clients without a ledger later bytes replace earlier ones.
// Blocks of a generation do not overlap. A block never changes but by masking, which replaces it.
package lines
