package control

import (
	"net/http"
	"strings"
	"testing"
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
			if code, text := raw(t, path, method, url, "", header); code != 403 || !strings.Contains(text, `"code":"forbidden"`) {
				t.Errorf("%s %s with %v: %d %s", method, url, header, code, text)
			}
		}
	}
	for _, host := range []string{"localhost", "LocalHost:1234", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:80", "ccship"} {
		if code, text := raw(t, path, "GET", "/v1/status", "", http.Header{"Host": {host}}); code != 200 {
			t.Errorf("host %s: %d %s", host, code, text)
		}
	}
}

// A path takes its own methods and says which.
func TestMethods(t *testing.T) {
	path := serve(t, &fake{status: Status{SchemaVersion: 1}})
	code, text := raw(t, path, "PUT", "/v1/documents", "", nil)
	if code != 405 || !strings.Contains(text, "DELETE, GET, POST") {
		t.Errorf("PUT: %d %s", code, text)
	}
	if code, text := raw(t, path, "HEAD", "/v1/status", "", nil); code != 200 || text != "" {
		t.Errorf("HEAD: %d %q", code, text)
	}
}
