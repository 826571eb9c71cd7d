package server

import (
	"time"
)

// RankQuery asks for sessions, ranked.
type RankQuery struct {
	Query  Query
	Reader int64         // whose stars count, and who "me" is
	Zone   time.Duration // east of UTC, for months
	After  string        // Next of the page before
	Limit  int           // sessions
	Each   int           // hits of each session at most
	Facets bool
}

// Ranked is one page of sessions that a search found, the best first. Agents' transcripts count as their session.
type Ranked struct {
	List []RankedSession
	// Missing are the words that the best session lacks, as the query has them, when no session has all of them.
	Missing []string
	Total   int64 // sessions on all pages; at least so many if More is set
	Facets  Facets
	Next    string // "" on the last page
	// More says that the search ended early, for it was to become too much work: there may be further sessions. The next
	// page goes on there, and may be empty.
	More bool
}

// RankedSession is a session that a search found.
type RankedSession struct {
	FoundSession
	Hits    []Hit    // the best first; none of a query that only has filters. Of agents' lines Session is the agent's
	Missing []string // words that the session lacks
	// Gone is the session that a prompt history names and that is not stored: FoundSession is the history then.
	Gone string
}

// Facets are how many of the found sessions each project, kind of text and month has, the most first; months from the
// newest on.
type Facets struct {
	Projects []Count `json:"projects"` // Value is Session.Repository, Name one of its names
	Kinds    []Count `json:"kinds"`
	Months   []Count `json:"months"` // Value is 2026-11
}

// Count is a value that a query can be narrowed to, and how many of the found sessions have it.
type Count struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
	Name  string `json:"-"`
}
