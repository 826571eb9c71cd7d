package control

import (
	"net"
	"net/http"
	"strings"
)

// refusal says why a request is not one of a program of the owner's, "" when it may be. No web page can open a Unix
// socket, but a proxy in front of it, or a browser of tomorrow, would forward what pages send.
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

// ownHost says whether a Host header means this machine: a name that a stranger's DNS points here does not.
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
