package api

import (
	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/recall"
	"github.com/ccship/ccship/transcript/session"
)

// linkAnswer is where a browser shows a line of a session.
type linkAnswer func(x server.Session, line int64) string

// moment is one entry of a timeline.
type moment struct {
	Line int64 `json:"line_index"`
	session.Moment
	URL string `json:"url"`
}

// timelineAnswer is a page of a timeline.
type timelineAnswer struct {
	Session sessionAnswer `json:"session"`
	Moments []moment      `json:"moments"`
	Read    int64         `json:"lines_read"` // of the session's lines
	Next    *string       `json:"next"`       // null on the last page
}

// timelineAnswerOf returns how a page of a timeline is shown.
func timelineAnswerOf(t recall.Timeline, names namesOf, link linkAnswer) timelineAnswer {
	return timelineAnswer{sessionAnswerOf(t.Session, names), each(t.Moments, func(m session.Moment) moment {
		return moment{m.Line, m, link(t.Session, m.Line)}
	}), t.Read, orNull(t.Next)}
}
