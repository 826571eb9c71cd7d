// Package usage sums the tokens that answers used and says what they cost, from the transcripts on disk or by asking a
// server. An answer counts once, however many lines and copies of it there are. It does not know how sums are shown.
package usage
