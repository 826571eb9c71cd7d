package auth

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// TicketURL returns the address that a one-time link leads to, below base.
func TicketURL(base, ticket string) string {
	return strings.TrimRight(base, "/") + "/login?ticket=" + url.QueryEscape(ticket)
}

// ParseTTL reads how long a one-time link works: a Go duration, "" for DefaultTicket.
func ParseTTL(s string) (time.Duration, error) {
	if s == "" {
		return DefaultTicket, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > MaxTicket {
		return 0, fmt.Errorf("%q is not a duration up to %v, such as 10m", s, MaxTicket)
	}
	return d, nil
}
