// Package beside runs ccship beside agentsview on the same conversations and prints one table: processor time and disk
// of an import, sessions found by twenty searches, what everything cost, and the weight and first paint of the list.
//
// It needs CCSHIP_BESIDE_AGENTSVIEW, the path of its program, which is built apart from this tree; `make beside` says
// more. The conversations are invented, CCSHIP_BESIDE_MB of them, or those below CCSHIP_CORPUS, a folder as
// ~/.claude/projects is one. Both programs get a home of their own, listen on loopback, and are measured from outside.
package beside
