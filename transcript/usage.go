package transcript

import (
	"cmp"
	"strconv"
	"time"
)

// Usage is the consumption of one request to the model, in tokens.
type Usage struct {
	Input, Output              int64 // Input does not include cache reads and writes
	CacheRead                  int64
	CacheWrite5m, CacheWrite1h int64 // they are priced differently; a write of unknown duration counts as 5m
	WebSearches, WebFetches    int64 // number of requests
}

// UsageSample is the usage reported by one assistant line. An answer has a line per block, so its usage is reported
// several times, at first with placeholders, and again in forks, resumes and replays. Count it once by Key, across all
// files.
type UsageSample struct {
	MessageID, RequestID, Model string
	UUID                        string // of the line
	Time                        time.Time
	Usage                       Usage
	Line                        int64
	Part                        int // 0: the answer itself; further requests that were made for it count from 1
	Sidechain                   bool
}

// Context returns the part of the model's window that the request filled: all input, without the answer.
func (u Usage) Context() int64 { return u.Input + u.CacheRead + u.CacheWrite5m + u.CacheWrite1h }

// Total returns all tokens, input and output.
func (u Usage) Total() int64 { return u.Context() + u.Output }

// Plus returns the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead,
		CacheWrite5m: u.CacheWrite5m + v.CacheWrite5m, CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h,
		WebSearches: u.WebSearches + v.WebSearches, WebFetches: u.WebFetches + v.WebFetches,
	}
}

// Minus returns the difference, after v was counted before.
func (u Usage) Minus(v Usage) Usage {
	return u.Plus(Usage{
		Input: -v.Input, Output: -v.Output, CacheRead: -v.CacheRead,
		CacheWrite5m: -v.CacheWrite5m, CacheWrite1h: -v.CacheWrite1h,
		WebSearches: -v.WebSearches, WebFetches: -v.WebFetches,
	})
}

// Key identifies the answer: the message id (a replay has the same one, but another request id), otherwise the request
// id, otherwise the line's uuid; "" if it has none. Further requests of an answer have a number behind it.
func (u UsageSample) Key() string {
	key := cmp.Or(u.MessageID, u.RequestID, u.UUID)
	if u.Part > 0 && key != "" {
		key += "#" + strconv.Itoa(u.Part)
	}
	return key
}

// Supersedes reports which of two samples with the same Key counts, independent of their order: the main chain's before
// a sidechain's, then the one with more output, then the one with more tokens in total, then the earlier one. So an
// answer whose lines are alike belongs to the day of its first.
func (u UsageSample) Supersedes(v UsageSample) bool {
	switch {
	case u.Sidechain != v.Sidechain:
		return v.Sidechain
	case u.Usage.Output != v.Usage.Output:
		return u.Usage.Output > v.Usage.Output
	case u.Usage.Total() != v.Usage.Total():
		return u.Usage.Total() > v.Usage.Total()
	case !u.Time.Equal(v.Time):
		return u.Time.Before(v.Time)
	}
	return u.Line < v.Line
}
