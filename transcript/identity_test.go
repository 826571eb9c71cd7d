package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestFirst(t *testing.T) {
	const meta = `{"type":"summary","summary":"about \"cwd\""}` + "\n"
	tests := []struct {
		name, lines, cwd, session string
	}{
		{"first line", `{"cwd":"/a","sessionId":"s1"}` + "\n" + `{"cwd":"/b","sessionId":"s2"}` + "\n", "/a", "s1"},
		{"later line", meta + "\n\n" + `{"cwd":"/a","sessionId":"s1"}` + "\n", "/a", "s1"},
		{"each its own", `{"sessionId":"s1"}` + "\n" + `{"cwd":"/a","sessionId":"s2"}`, "/a", "s1"},
		{"no newline", meta + `{"cwd":"/a"}`, "/a", ""},
		{"empty and of another kind", `{"cwd":"","sessionId":""}` + "\n" + `{"cwd":5}` + "\n" + `{"cwd":"/a","sessionId":"s"}`, "/a", "s"},
		{"nested is not the record's", `{"toolUseResult":{"cwd":"/x","sessionId":"x"}}` + "\n", "", ""},
		{"escaped", `{"cwd":"C:\\src\\\ud55c\ud83d","sessionId":"a\/b"}`, `C:\src\한` + "\uFFFD", "a/b"},
		{"escaped names", `{"\u0063wd":"/a","session\u0049d":"s"}`, "/a", "s"},
		{"damaged line", `{"parentUuid":"x{"type":"user","cwd":"/a","sessionId":"s"}` + "\n" + `{"cwd":"/b"}`, "/a", "s"},
		{"NULs", strings.Repeat("\x00", 99) + `{"cwd":"/a","sessionId":"s"}`, "/a", "s"},
		{"CRLF", `{"cwd":"/a","sessionId":"s"}` + "\r\n", "/a", "s"},
		{"nothing", "", "", ""},
		{"only metadata", meta + meta, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cwd, ok := FirstCwd([]byte(tt.lines))
			kit.Check(t, cwd == tt.cwd && ok == (tt.cwd != ""), "FirstCwd = %q, %t; want %q", cwd, ok, tt.cwd)
			id, ok := FirstSessionID([]byte(tt.lines))
			kit.Check(t, id == tt.session && ok == (tt.session != ""), "FirstSessionID = %q, %t; want %q", id, ok, tt.session)
		})
	}
}

func TestNames(t *testing.T) {
	tests := []struct {
		name, parent string
		copies       int
		want, under  string
	}{
		{"1c0e", "", 1, "1c0e", ""},
		{"1c0e", "", 2, "1c0e~2", ""},
		{"1c0e/agent-7", "", 1, "1c0e/agent-7", "1c0e"},
		{"1c0e/agent-7", "other", 3, "1c0e/agent-7~3", "1c0e"},
		{"agent-7", "1c0e", 1, "1c0e/agent-7", ""},
		{"agent-7", "1c0e", 2, "1c0e/agent-7~2", ""},
		{"agent-7", "", 0, "agent-7", ""},
	}
	for _, tt := range tests {
		kit.Equal(t, fmt.Sprintf("StreamName(%q, %q, %d)", tt.name, tt.parent, tt.copies),
			StreamName(tt.name, tt.parent, tt.copies), tt.want)
		kit.Equal(t, fmt.Sprintf("ParentName(%q)", tt.name), ParentName(tt.name), tt.under)
	}
	// sha256 of "/home/kim/.claude/projects"
	got, want := HistoryName("m1", "/home/kim/.claude/projects"), "history-m1-c672a285"
	kit.Check(t, got == want, "HistoryName = %q, want %q", got, want)
}

// TestForgetNames: forgetting a session covers its further files and its agents, and no other session.
func TestForgetNames(t *testing.T) {
	for stream, want := range map[string][]string{
		"s":             {"s"},
		"s~2":           {"s~2", "s"},
		"s~12":          {"s~12", "s"},
		"s~2~3":         {"s~2~3", "s~2"},
		"s/agent-7":     {"s/agent-7", "s"},
		"s/agent-7~2":   {"s/agent-7~2", "s/agent-7", "s"},
		"s~2/agent-7":   {"s~2/agent-7", "s~2", "s"},
		"s~2/agent-7~3": {"s~2/agent-7~3", "s~2/agent-7", "s~2", "s"},
		"agent-7":       {"agent-7"},
		"agent-7~2":     {"agent-7~2", "agent-7"},
		"s~":            {"s~"},
		"s~x":           {"s~x"},
		"s~2x":          {"s~2x"},
		"~2":            {"~2"},
		"/agent-7":      {"/agent-7"},
		"":              nil,
	} {
		kit.Equal(t, fmt.Sprintf("ForgetNames(%q)", stream), ForgetNames(stream), want)
	}
}

// TestCovering: a session covers its further files and its agents, and no other session.
func TestCovering(t *testing.T) {
	for names, want := range map[string]string{
		"s": "s", "s~2 s": "s", "s s/agent-7 s~2 s~2/agent-8": "s", "s/agent-7 s/agent-7~2": "s/agent-7",
		"": "", "s s2": "", "s~2 s~3": "", "s/agent-7 s/agent-8": "", "s s~2 t": "",
	} {
		got, ok := Covering(strings.Fields(names))
		kit.Check(t, got == want && ok == (want != ""), "Covering(%q) = %q, %v, want %q", names, got, ok, want)
	}
}

func TestUnquote(t *testing.T) {
	tests := []struct{ raw, want string }{
		{``, ""},
		{`plain 한`, "plain 한"},
		{`\"\\\/\b\f\n\r\t`, "\"\\/\b\f\n\r\t"},
		{`a\u00e9\u0000b`, "aé\x00b"},
		{`\ud83d\ude42!`, "🙂!"},
		{`\uD83D`, "\uFFFD"},
		{`\ude42\ud83d`, "\uFFFD\uFFFD"},
		{`\ud83dx\ude42`, "\uFFFDx\uFFFD"},
		{`\ud83d\u0041`, "\uFFFDA"},
		{`\ud83d\n`, "\uFFFD\n"},
		{`\ud83d\ud83d\ude42`, "\uFFFD🙂"},
	}
	for _, tt := range tests {
		kit.Equal(t, fmt.Sprintf("Unquote(%s)", tt.raw), Unquote([]byte(tt.raw)), tt.want)
	}
}

func TestMainSession(t *testing.T) {
	for _, test := range []struct{ stream, parent, want string }{
		{"s", "", "s"}, {"s/agent-1", "", "s"}, {"agent-1", "s", "s"}, {"s~2", "", "s~2"}, {"", "", ""},
	} {
		kit.Equal(t, fmt.Sprintf("MainSession(%q, %q)", test.stream, test.parent), MainSession(test.stream, test.parent),
			test.want)
	}
}

func TestValidSession(t *testing.T) {
	for name, want := range map[string]bool{
		"s": true, strings.Repeat("x", 200): true, "": false, strings.Repeat("x", 201): false, "a\nb": false, "a\x00": false,
	} {
		kit.Equal(t, fmt.Sprintf("ValidSession(%.20q)", name), ValidSession(name), want)
	}
}
