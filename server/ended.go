package server

import (
	"fmt"
	"strings"
)

// Ended lists what revoking a key ended besides the key: what was made with it, or with what was made with it, and
// worked.
type Ended struct {
	Keys    []string // names, sorted
	Logins  int64
	Tickets int64    // one-time links
	Links   int64    // to sessions
	Users   []string // that it made: names of those who are disabled now, sorted. What they sent is kept
	Reset   []User   // whom it gave another role or enabled: as they were before
	Shares  []EndedShare
}

// EndedShare is a share of a project that is no more.
type EndedShare struct {
	Owner   string `json:"owner"` // whose
	With    string `json:"with"`
	Project string `json:"project"`
}

// String says what ended in words, without a final dot; "nothing else" for nothing.
func (e Ended) String() string {
	var out []string
	names := func(what string, list []string) {
		if len(list) > 0 {
			out = append(out, fmt.Sprintf("%s %s", what, quoted(list)))
		}
	}
	count := func(n int64, one string) {
		if n == 1 {
			out = append(out, "1 "+one)
		} else if n > 1 {
			out = append(out, fmt.Sprintf("%d %ss", n, one))
		}
	}
	names("keys", e.Keys)
	count(e.Logins, "login")
	count(e.Tickets, "one-time link")
	count(e.Links, "link")
	for _, s := range e.Shares {
		out = append(out, fmt.Sprintf("the share of %q of %q with %q", s.Project, s.Owner, s.With))
	}
	for _, u := range e.Reset {
		now := string(u.Role)
		if !u.Disabled.IsZero() {
			now = "disabled"
		}
		out = append(out, fmt.Sprintf("rights of %q: %s again", u.Name, now))
	}
	names("users, now disabled:", e.Users)
	if len(out) == 0 {
		return "nothing else"
	}
	return strings.Join(out, "; ")
}

func quoted(list []string) string {
	var b strings.Builder
	for i, s := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", s)
	}
	return b.String()
}
