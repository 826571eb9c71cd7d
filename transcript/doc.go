// Package transcript knows what a line of a Claude Code transcript is: a record, a blank, something damaged; and what
// the records of a conversation mean together. It is pure: bytes in, facts out; no files, no clock, nothing of ours
// imported. Bytes are never re-encoded: a line becomes an entry of the wire by a splice, and the entry the line again
// by cutting the splice out.
//
// Delivery needs Scan, Recover and the entries. All else is derived, late and tolerantly: Parse reads one record,
// Session folds records in file order into events and a summary, MessageLog events into a short history, Tree records
// into the conversation as it stands. What is not known passes through; what has the wrong kind is left out.
package transcript
