// Package transcript knows what a line of a Claude Code transcript is: a record, a blank line, or something damaged; and
// what one record says. It is pure: bytes in, facts out; no files, no clock, nothing of ours imported. Bytes are never
// encoded again: a line becomes an entry of the wire by a splice, and the entry becomes the line by cutting the splice
// out.
//
// Delivery needs Scan, Recover and the entries. Parse is for readers: it reads one record and is tolerant. What it does
// not know passes through; a member of the wrong kind is left out. What records mean together is the business of
// package session.
package transcript
