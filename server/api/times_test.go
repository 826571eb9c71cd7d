package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// reads requests every response that has times, and wants success.
func (r *rig) reads(why string) {
	r.t.Helper()
	for _, path := range []string{"/api/sessions", "/api/sessions?order=recent", "/api/sessions/s", "/api/sessions/s/entries",
		"/api/search?q=zebra", "/api/usage?by=day"} {
		if a := r.get(path); a.status != 200 {
			r.t.Errorf("%s: %s: %d %s", why, path, a.status, a.body)
		}
	}
}

// TestImplausibleTimes: a record whose time has no form in JSON, being of year 10000 or of a negative one, is a record
// without a time; so is one that an older version has stored.
func TestImplausibleTimes(t *testing.T) {
	r := newRig(t)
	var lines []string
	for i, at := range []string{"9999-12-31T09:00:01.000-23:59", "0000-01-01T00:00:00.000+23:59", "0001-01-01T00:00:01.000Z"} {
		lines = append(lines,
			fmt.Sprintf(`{"type":"user","uuid":"u%d","timestamp":%q,"message":{"role":"user","content":"a zebra"}}`, i, at),
			fmt.Sprintf(`{"type":"assistant","uuid":"a%d","timestamp":%q,"message":{"id":"m%[1]d","role":"assistant","model":"claude-opus-5","usage":{"input_tokens":5}}}`, i, at))
	}
	r.post(piece{lines: lines}.body("s"))
	r.waitDerived()
	r.reads("just derived")
	var s struct {
		Summary struct{ Started, Ended *string }
	}
	if r.getJSON("/api/sessions/s", &s); s.Summary.Started != nil || s.Summary.Ended != nil {
		t.Errorf("summary %+v, want no times", s.Summary)
	}
	for _, at := range []time.Time{time.Date(10000, 1, 1, 9, 0, 0, 0, time.UTC), time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)} {
		for _, set := range []string{"facts SET started = ?, ended = ?", "answers SET time = ?"} {
			args := []any{at.UnixMicro(), at.UnixMicro()}[:strings.Count(set, "?")]
			if _, err := r.db().Exec("UPDATE "+set, args...); err != nil {
				t.Fatal(err)
			}
		}
		r.reads("stored as " + at.String())
	}
}
