//go:build unix

package viewer_test

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// errand is a session of the weeks before: what was asked, and where.
type errand struct {
	title, prompt string
	project       string
	desk          bool // on the workbench, else on the laptop
	days          int  // ago
	model         string
	turns         int
}

// errands are the sessions of some months, the oldest first.
var errands = []errand{
	{"Parse the harbour authority's tide tables", "Read the tide tables in data/2026 and make records of them", "almanac", true, 171, "claude-opus-5", 9},
	{"Sunrise and sunset without a service", "We ask a service for sunrise. Compute it instead, good to a minute", "almanac", true, 158, "claude-opus-5", 12},
	{"Board: rows jump when a sailing is cancelled", "When a sailing is cancelled the rows below jump. Make them slide", "tideboard", false, 149, "claude-sonnet-5", 6},
	{"Feed parser rejects times past midnight", "25:10 in the feed means ten past one the next day. The parser throws it away", "harbour", false, 137, "claude-opus-5", 8},
	{"Move the build to a lock file", "Pin every dependency and say in the readme how to renew them", "tideboard", false, 126, "claude-haiku-4-5", 4},
	{"Retry the feed politely", "When the feed is down we ask every second. Back off", "harbour", false, 26, "claude-sonnet-5-5", 5},
	{"Rewrite the station index", "The index of stations is built by hand. Generate it", "almanac", true, 22, "claude-opus-5-5", 12},
	{"Cancelled sailings in the calendar feed", "People subscribe to the calendar and don't see cancellations", "harbour", false, 18, "claude-opus-5-5", 8},
	{"Keyboard focus is lost after a refresh", "After each refresh the focus is gone. Keep it where it was", "tideboard", false, 15, "claude-sonnet-5-5", 6},
	{"Storm surge: show how sure we are", "Draw the band in which nine of ten measurements lie", "almanac", true, 12, "claude-opus-5-5", 11},
	{"Split timetable from harbour", "timetable knows too much of harbour. Draw a line between them", "harbour", false, 9, "claude-opus-5-5", 15},
	{"Fewer requests from the board", "The board asks for everything each minute. Ask for what has changed", "tideboard", false, 7, "claude-sonnet-5-5", 7},
	{"Test with a real year of data", "Run the whole of 2025 through the predictor in a test, quickly", "almanac", true, 5, "claude-opus-5-5", 9},
	{"Operators' notes on a sailing", "Operators want to write a line that stands below a sailing", "harbour", true, 3, "claude-opus-5-5", 10},
	{"Fit the board to the phone", "On a phone the times wrap. Make it fit 360 pixels", "tideboard", false, 2, "claude-sonnet-5-5", 8},
	{"Low water at the slipway", "From the tide and the chart: between which times can a boat not be launched?", "almanac", true, 1, "claude-opus-5-5", 9},
}

// play writes the session; the same each time but for its dates.
func (e errand) play(now time.Time, n int) *script {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	day := now.Truncate(24*time.Hour).AddDate(0, 0, -e.days)
	s := &script{id: fmt.Sprintf("%08x-5c3e-4d2a-8f61-%012x", 0x2b70a1c4+n*0x01030507, n), cwd: "/home/kim/src/" + e.project, branch: "main", model: e.model,
		at: day.Add(time.Duration(7*60+r.IntN(600)) * time.Minute), context: 24_000 + r.Int64N(19_000), fresh: 15_000}
	s.prompt(e.prompt)
	s.titled(e.title)
	for i := range e.turns {
		for range 3 + r.IntN(6) {
			s.tool("Bash", object{"command": "git log --oneline -5", "description": "What was done last"}, "9c1f2ab Tidy", object{"stdout": "9c1f2ab Tidy", "stderr": ""}, 2*time.Second)
			s.fresh += 600 + r.Int64N(1800)
		}
		s.say("Done: step " + fmt.Sprint(i+1) + ".")
		if i+1 < e.turns {
			s.wait(time.Duration(r.IntN(25)) * time.Minute)
			if i%5 == 4 { // goes on another day
				s.wait(22 * time.Hour)
			}
			if s.at.After(now) {
				s.at = now
			}
			s.prompt("Go on.")
		}
	}
	return s
}

// where is the stream of a session on the laptop or the workbench.
func where(id, project string, desk bool) stream {
	x := stream{id: id, machine: "4f0c9a11d2e7", host: "kims-laptop", project: project, cwd: "/home/kim/src/" + project}
	if desk {
		x.machine, x.host = "b81e77c05a3f", "workbench"
	}
	return x
}

// t0 is a moment for what nobody looks at the time of.
var t0 = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
