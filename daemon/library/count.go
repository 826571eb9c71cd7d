package library

import (
	"context"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// What is known of the numbers of an Item.
const (
	Complete = "complete"
	Reading  = "reading" // the server has not read all lines yet; the numbers are those of the lines it has read
	Unknown  = "unknown" // the session is only on disk, and too long to be read for a list; the numbers are 0
)

// countLimit is how long a transcript on disk may be for its messages and tokens to be counted in a list, in bytes.
const countLimit = 4 << 20

// moment is how many lines a server may be behind without a word: it reads them within a second.
const moment = 1000

// countsOf says whether a server has read a session's lines.
func countsOf(s *remote.Session) string {
	if behind := s.Lines - s.Summary.Lines; behind > moment || behind > 0 && s.Summary.Lines == 0 {
		return Reading
	}
	return Complete
}

// counted is what a session on disk and its agents' transcripts add up to.
type counted struct {
	session.Summary // of the session alone
	Lines           int64
	Tokens          int64 // of each answer once
	Cost            *float64
}

// count reads a session and its agents' transcripts.
func (l *Library) count(ctx context.Context, file File, agents []string) (c counted, err error) {
	answers := map[string]transcript.UsageSample{}
	c.Summary, c.Lines, err = fold(ctx, file.Path, answers, false)
	if err != nil {
		return c, err
	}
	for _, path := range agents {
		if _, _, err := fold(ctx, path, answers, true); err != nil {
			return c, err
		}
	}
	prices := l.Prices
	if prices == nil {
		prices = transcript.DefaultPrices()
	}
	var cost transcript.Cost
	for _, a := range answers {
		c.Tokens += a.Usage.Total()
		cost = cost.Plus(prices.Cost(a.Model, a.Usage, a.Usage.Context() > transcript.LongContext))
	}
	if cost.Known() && cost.Priced > 0 {
		c.Cost = &cost.USD
	}
	return c, nil
}

// fold reads a transcript, and adds its answers to those that are known by key.
func fold(ctx context.Context, path string, answers map[string]transcript.UsageSample,
	agent bool) (sum session.Summary, lines int64, err error) {
	var s session.Fold
	err = eachLine(ctx, path, func(line []byte, whole bool) error {
		if !whole { // it is still being written
			return nil
		}
		for _, r := range transcript.Records(line) {
			for _, e := range s.Add(lines, r) {
				if e.Kind != session.UsageEvent {
					continue
				}
				u := *e.Usage
				u.Sidechain = u.Sidechain || agent
				if before, ok := answers[u.Key()]; !ok || u.Supersedes(before) {
					answers[u.Key()] = u
				}
			}
		}
		lines++
		return nil
	})
	return s.Summary(), lines, err
}
