package transcript

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestReplaceStrings(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"user","cwd":"/old","x":1}`:                            `{"type":"user","cwd":"/new","x":1}`,
		` { "cwd" : "/old" , "y":[{"cwd":"/old"}],"z":"/old" } `:        ` { "cwd" : "/new" , "y":[{"cwd":"/old"}],"z":"/old" } `,
		`{"cwd":"\/old","cwd":"/old"}`:                                  `{"cwd":"/new","cwd":"/new"}`,
		`{"c\u0077d":"/old"}`:                                           `{"c\u0077d":"/new"}`,
		`{"message":{"cwd":"/old","content":"\"cwd\":\"/old\""}}`:       `{"message":{"cwd":"/old","content":"\"cwd\":\"/old\""}}`,
		`{"cwd":["/old"],"relocatedCwd":"/old","other":{"a":"\ud83d"}}`: `{"cwd":["/old"],"relocatedCwd":"/new","other":{"a":"\ud83d"}}`,
		`{"cwd":7}`:       `{"cwd":7}`,
		`{}`:              `{}`,
		`{"cwd":"/else"}`: `{"cwd":"/else"}`,
	} {
		in := []byte(line)
		got := ReplaceStrings(in, []string{"cwd", "relocatedCwd"}, func(s string) string { return strings.ReplaceAll(s, "/old", "/new") })
		kit.Check(t, string(got) == want && string(in) == line, "%s\nbecame %s\nwant   %s", line, got, want)
	}
	got := ReplaceStrings([]byte(`{"cwd":"a"}`), []string{"cwd"}, func(string) string { return "C:\\<é>&\u2028\"" })
	want := `{"cwd":"C:\\<é>&\u2028\""}`
	kit.Check(t, string(got) == want, "%s, want %s", got, want)
}
