// Package sys asks the operating system what both programs need from it: a name of this machine that stays the same and
// gives away neither person nor place, the folders of a user, files that are replaced in one step, locks between
// processes, the peer of a socket, and a bound for the heap.
package sys
