// Package transcript knows what a line of a Claude Code transcript is (a record, a blank line, or something damaged)
// and what one record says. It is pure: bytes in, facts out; no files, no clock, no other package of ccship. It never
// re-encodes bytes: splicing turns a line into a wire entry, and cutting the splice out restores the line.
//
// Delivery needs only Scan, Recover and the entries. Parse is for readers: it reads one record tolerantly. Unknown
// members pass through; a member of an unexpected kind is ignored. What several records mean together is the subject of
// package session. Prices say what tokens cost: a dated list by model, which a file can replace.
package transcript
