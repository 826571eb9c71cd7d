// Package cold keeps old blocks and files outside of the database, as objects of about a MiB. The database keeps which
// object has what, and the hash of each. An object belongs to one stream or one file, and its name is never used again.
//
// An object is noted in the database before it is written, and used only after it was read back and its hash is right;
// in the same transaction the bytes leave the database. So a crash leaves at most objects that nothing uses; they are
// noted, and are removed later.
//
// A block that changes, or goes, stops using its object in the transaction that does that, and has its bytes in the
// database from then on. Sweep brings back what else the object has, and removes it once no open snapshot shows it.
package cold
