// Package block packs lines of a transcript into blocks: about 160 KiB of lines as one zstd frame, and a header that
// says which lines they are. A block is proven by its hash whenever it is opened. The package knows no database.
package block
