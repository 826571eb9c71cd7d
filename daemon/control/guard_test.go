package control

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// What a web page can make a browser send is refused on every path, before anything is done.
func TestGuard(t *testing.T) {
	path := serve(t, &fake{status: Status{SchemaVersion: 1, Running: true}}) // anything else it is asked would panic
	refused := []http.Header{
		{"Origin": {"http://evil.example"}}, {"Origin": {"null"}}, {"Referer": {"http://evil.example/x"}},
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-origin"}}, {"Sec-Fetch-Mode": {"no-cors"}},
		{"Host": {"evil.example"}}, {"Host": {"evil.example:80"}}, {"Host": {"localhost.evil.example"}}, {"Host": {"127.0.0.1.evil.example"}},
		{"Host": {"10.0.0.1"}}, {"Host": {"[::2]:5000"}},
	}
	for url, method := range map[string]string{"/v1/status": "GET", "/v1/pause": "POST", "/debug/pprof/heap": "GET", "/nothing": "GET"} {
		for _, header := range refused {
			code, text := raw(t, path, method, url, "", header)
			kit.Check(t, code == 403 && strings.Contains(text, `"code":"forbidden"`), "%s %s with %v: %d %s", method, url, header, code, text)
		}
	}
	for _, host := range []string{"localhost", "LocalHost:1234", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:80", "ccship"} {
		code, text := raw(t, path, "GET", "/v1/status", "", http.Header{"Host": {host}})
		kit.Check(t, code == 200, "host %s: %d %s", host, code, text)
	}
}

// A path takes its own methods and says which.
func TestMethods(t *testing.T) {
	path := serve(t, &fake{status: Status{SchemaVersion: 1}})
	code, text := raw(t, path, "PUT", "/v1/documents", "", nil)
	kit.Check(t, code == 405 && strings.Contains(text, "DELETE, GET, POST"), "PUT: %d %s", code, text)
	code, text = raw(t, path, "HEAD", "/v1/status", "", nil)
	kit.Check(t, code == 200 && text == "", "HEAD: %d %q", code, text)
}
