package derive

import (
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// Cost is what the answers of a row cost. Its Model must be set.
func Cost(p *transcript.Prices, row server.UsageRow) transcript.Cost {
	t := row.Tokens
	u := transcript.Usage{
		Input: t.Input, Output: t.Output, CacheRead: t.CacheRead, CacheWrite5m: t.CacheWrite5m, CacheWrite1h: t.CacheWrite1h,
		WebSearches: t.Searches,
	}
	return p.Cost(row.Model, u, row.Long)
}

// CostOfAll is what the answers of all rows cost together.
func CostOfAll(p *transcript.Prices, rows []server.UsageRow) (sum transcript.Cost) {
	for _, r := range rows {
		sum = sum.Plus(Cost(p, r))
	}
	return sum
}
