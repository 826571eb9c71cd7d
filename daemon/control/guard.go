package control

import (
	"net"
	"net/http"
	"strings"
)

// refusal returns why a request cannot come from a program of the owner; "" when it can. Web pages cannot open a Unix
// socket, but a proxy in front of it, or a future browser, would forward what pages send.
func refusal(r *http.Request) string {
	for _, name := range []string{"Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode"} {
		if r.Header.Get(name) != "" {
			return "requests of web pages are refused"
		}
	}
	if !ownHost(r.Host) {
		return "requests for another host are refused"
	}
	return ""
}

// ownHost reports whether a Host header names this machine. It refuses other names, which DNS may point here.
func ownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "" || name == clientHost || name == "localhost" {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
