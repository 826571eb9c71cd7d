package transcript

import "time"

// Usage is what one request to the model used, in tokens.
type Usage struct {
	Input, Output              int64 // Input without what the cache gave or took
	CacheRead                  int64
	CacheWrite5m, CacheWrite1h int64 // prices differ; a write of unknown kind counts as 5m
	WebSearches, WebFetches    int64 // requests
}

// UsageSample is the usage that one assistant line tells. An answer has a line per block, so it is told several
// times, at first with placeholders, and again in forks, resumes and replays: count once by Key, over all files.
type UsageSample struct {
	MessageID, RequestID, Model string
	UUID                        string // of the line
	Time                        time.Time
	Usage                       Usage
	Line                        int64
	Sidechain                   bool
	Final                       bool // the line has a stop reason: its numbers are no placeholders
}

// Context is how much of the model's window the request filled: everything it was sent, its answer not included.
func (u Usage) Context() int64 { return u.Input + u.CacheRead + u.CacheWrite5m + u.CacheWrite1h }

// Total is all tokens, in and out.
func (u Usage) Total() int64 { return u.Context() + u.Output }

// Plus is the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead,
		CacheWrite5m: u.CacheWrite5m + v.CacheWrite5m, CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h,
		WebSearches: u.WebSearches + v.WebSearches, WebFetches: u.WebFetches + v.WebFetches,
	}
}

// Minus is what is left when v, which was counted before, is taken back.
func (u Usage) Minus(v Usage) Usage {
	return u.Plus(Usage{
		Input: -v.Input, Output: -v.Output, CacheRead: -v.CacheRead,
		CacheWrite5m: -v.CacheWrite5m, CacheWrite1h: -v.CacheWrite1h,
		WebSearches: -v.WebSearches, WebFetches: -v.WebFetches,
	})
}

// Key is what samples of one answer have in common: the message id (a replay of it has another request id), without
// one the request id, without both the line's uuid.
func (u UsageSample) Key() string {
	switch {
	case u.MessageID != "":
		return u.MessageID
	case u.RequestID != "":
		return u.RequestID
	}
	return u.UUID
}

// Supersedes says which of two samples with one Key counts, in whatever order they come: the main chain's before a
// sidechain's, then the one with more output, then the one with more of everything, then the later line.
func (u UsageSample) Supersedes(v UsageSample) bool {
	switch {
	case u.Sidechain != v.Sidechain:
		return v.Sidechain
	case u.Usage.Output != v.Usage.Output:
		return u.Usage.Output > v.Usage.Output
	case u.Usage.Total() != v.Usage.Total():
		return u.Usage.Total() > v.Usage.Total()
	}
	return u.Line > v.Line
}
