package page

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Choice is one of several ways to show a page.
type Choice struct {
	Name, URL string
	On        bool
}

// Address returns a path with some of the values of q changed; "" removes a value. The list of sessions of a project
// has an address of its own.
func Address(path string, q url.Values, change ...string) string {
	next := url.Values{}
	for k, v := range q {
		if len(v) > 0 && v[0] != "" {
			next[k] = v
		}
	}
	for i := 0; i+1 < len(change); i += 2 {
		next.Set(change[i], change[i+1])
		if change[i+1] == "" {
			next.Del(change[i])
		}
	}
	if name := next.Get("project"); path == "/" && name != "" {
		path = "/p/" + url.PathEscape(name)
		next.Del("project")
	}
	if len(next) == 0 {
		return path
	}
	return path + "?" + next.Encode()
}

// zoneCookie is set by the browser: minutes east of UTC.
const zoneCookie = "ccship_zone"

// Zone returns how far east of UTC the browser is.
func Zone(r *http.Request) time.Duration {
	c, err := r.Cookie(zoneCookie)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(c.Value)
	if err != nil || n < -14*60 || n > 14*60 {
		return 0
	}
	return time.Duration(n) * time.Minute
}

// Number reads a whole number ≥ 0; anything else is absent.
func Number(s string, absent int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return absent
	}
	return n
}
