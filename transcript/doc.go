// Package transcript knows what a line of a Claude Code transcript is: a record, a blank, something damaged. It is
// pure: bytes in, facts out; no files, no clock, nothing of ours imported. Bytes are never re-encoded: a line becomes
// an entry of the wire by a splice, and the entry the line again by cutting the splice out.
package transcript
