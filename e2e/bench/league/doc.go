// Package league keeps what several contestants measured in the same scenarios, round by round, and compares them: as
// tables whose first figure is the ratio to one of them, and with the figures of an earlier time. It does not know what
// is measured.
package league
