// Package lines keeps the lines of transcripts, in the same way in both databases: in blocks, in hot rows, in objects
// outside of the database. It knows no driver.
//
// A block holds about 160 KiB of lines as one zstd frame, and a header that says which lines they are. It is proven by
// its hash whenever it is opened, and never changes but by masking, which replaces it. Blocks of a generation do not
// overlap. Lines that came last are hot, rows of their own; a sealer packs them later. Readers see both as one. A hot
// row is in force where a block has the line too: of clients without a ledger later bytes replace earlier ones.
//
// Cold blocks and files are objects of about a MiB. The database keeps which object has what, and the hash of each. An
// object belongs to one stream or one file, and its name is never used again. It is noted in the database before it is
// written, and used only after it was read back and its hash is right; in the same transaction the bytes leave the
// database. So a crash leaves at most objects that nothing uses; they are noted, and are removed later. A block that
// changes, or goes, stops using its object in the transaction that does that. Sweep brings back the rest of the object,
// and removes it once no open snapshot shows it.
//
// Masks replaces secrets in stored bytes by tokens, and changes nothing else. Policy previews and applies rules of
// retention; of lines that went it keeps the hashes.
package lines
