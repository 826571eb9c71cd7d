// Package cold keeps old blocks and files outside of the database, as objects of about a MiB. The database keeps which
// object has what, and the hash of each. An object belongs to one stream or one file, and its name is never used again.
//
// An object is noted in the database before it is written, and used only after it was read back and its hash is right;
// in the same transaction the bytes leave the database. So a crash leaves at most objects that nothing uses; they are
// noted, and are removed later. Whoever stops using an object notes that in the transaction that does, and removes it
// after that.
package cold
