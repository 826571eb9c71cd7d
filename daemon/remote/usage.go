package remote

import (
	"context"
	"net/url"
	"strings"
	"time"
)

// UsageQuery sums tokens. By names the columns that rows differ in: "day", "project", "model", "machine", "session".
type UsageQuery struct {
	By           []string
	Since, Until time.Time     // Until is exclusive; the zero time is no limit
	Zone         time.Duration // of days: how far east of UTC, in whole minutes
	User         string        // only this user's; Me: the caller's
	Session      string        // only this one and its agents; "": all
	Machine      *string       // only this one's; nil: all
}

// UsageSums is the answer to a UsageQuery.
type UsageSums struct {
	Rows   []UsageRow `json:"rows"`
	Prices string     `json:"prices_as_of"` // the day that the server's price list is of
}

// UsageRow is one sum, each answer counted once. Columns that By does not name are empty.
type UsageRow struct {
	Day         string `json:"day"`
	ProjectHash string `json:"project_hash"`
	Project     string `json:"project"`
	Model       string `json:"model"`
	Machine     string `json:"machine"`
	Session     string `json:"session_id"` // of the transcript, which may be an agent's
	Answers     int64  `json:"answers"`
	Usage
	Cost     *float64 `json:"cost_usd"`        // nil: no price is known for any of them
	Unpriced int64    `json:"unpriced_tokens"` // not in Cost
}

// Usage sums the tokens of what the server has derived so far.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (UsageSums, error) {
	v := url.Values{"zone": {time.Unix(0, 0).In(time.FixedZone("", int(q.Zone.Seconds()))).Format("Z07:00")}}
	if len(q.By) > 0 {
		v.Set("by", strings.Join(q.By, ","))
	}
	if q.User != "" {
		v.Set("user", q.User)
	}
	if q.Session != "" {
		v.Set("session", q.Session)
	}
	if q.Machine != nil {
		v.Set("machine", *q.Machine)
	}
	for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	var a UsageSums
	err := c.get(ctx, "/api/usage", v, &a)
	return a, err
}
