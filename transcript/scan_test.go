package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
)

const deep = 1_000_000

func TestScanShape(t *testing.T) {
	nul := strings.Repeat("\x00", 300)
	tests := []struct {
		name, line string
		want       Shape
	}{
		{"record", `{"type":"user","message":{"content":[1,-2.5e+3,true,false,null,"x"]}}`, Object},
		{"spaced", " {\t\"a\" : [ 1 , { } , [ ] ] } \t", Object},
		{"CRLF", `{"a":1}` + "\r", Object},
		{"no members", `{}`, Object},
		{"lone surrogates", `{"a":"\ud83d","b":"\uDC00x"}`, Object},
		{"unicode", `{"a":"한국어 é 🙂 ` + "\x7f" + `"}`, Object},
		{"all escapes", `{"a":"\"\\\/\b\f\n\r\t\u00aF"}`, Object},
		{"duplicate keys", `{"a":1,"a":2}`, Object},
		{"own line_index", `{"line_index":7}`, Object},
		{"deepest", nested(MaxDepth-1, "[", "]"), Object},
		{"deepest objects", nested(MaxDepth-1, `{"a":`, "}"), Object},
		{"empty", ``, Blank},
		{"white space", " \t\r", Blank},
		{"too deep", nested(MaxDepth, "[", "]"), Malformed},
		{"far too deep", nested(deep, "[", "]"), Malformed},
		{"far too deep objects", nested(deep, `{"a":`, "}"), Malformed},
		{"far too deep, mixed", nested(deep/2, `{"a":[`, "]}"), Malformed},
		{"glued", `{"a":1}{"b":2}`, Malformed},
		{"cut and next", `{"a":"xy{"type":"user"}`, Malformed},
		{"NULs alone", nul, Malformed},
		{"NULs before", nul + `{"a":1}`, Malformed},
		{"NULs between members", `{"a":1,` + nul + `"b":2}`, Malformed},
		{"NULs in a string", `{"a":"` + nul + `"}`, Malformed},
		{"NULs behind", `{"a":1}` + nul, Malformed},
		{"torn", `{"a":"b`, Malformed},
		{"torn escape", `{"a":"b\`, Malformed},
		{"torn surrogate", `{"a":"\ud8`, Malformed},
		{"byte order mark", "\xef\xbb\xbf{}", Malformed},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", Malformed},
		{"torn UTF-8", "{\"a\":\"\xed\x95\"}", Malformed},
		{"surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", Malformed},
		{"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", Malformed},
		{"overlong UTF-8 of three", "{\"a\":\"\xe0\x80\xaf\"}", Malformed},
		{"tab in a string", "{\"a\":\"\t\"}", Malformed},
		{"array", `[{"a":1}]`, Malformed},
		{"string", `"a"`, Malformed},
		{"number", `1`, Malformed},
		{"indented, first line", `{`, Malformed},
		{"text", `hello`, Malformed},
		{"no-break space", "\u00a0", Malformed},
		{"as the wire's opaque", `{"type":"ccship.opaque","encoding":"base64","data":"e30="}`, Reserved},
		{"as the wire's oversize", `{"a":1,"type":"ccship.oversize"}`, Reserved},
		{"some other of our types", `{"type":"ccship.other"}`, Object},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kit.Equal(t, fmt.Sprintf("Scan(%.60q).Shape", tt.line), Scan([]byte(tt.line)).Shape, tt.want)
		})
	}
}

// nested is a record with n levels in its only member.
func nested(n int, open, shut string) string {
	middle := ""
	if strings.HasSuffix(open, ":") {
		middle = "0"
	}
	return `{"x":` + strings.Repeat(open, n) + middle + strings.Repeat(shut, n) + `}`
}

func TestScanMembers(t *testing.T) {
	tests := []struct {
		name, line, typ, cwd, session string
		hasIndex, empty               bool
	}{
		{"usual", `{"parentUuid":null,"cwd":"/a","sessionId":"s","type":"user"}`, "user", "/a", "s", false, false},
		{"top level only", `{"m":{"type":"x","cwd":"/x","line_index":1},"type":"user"}`, "user", "", "", false, false},
		{"first of a name", `{"type":"a","type":"b","cwd":"/1","cwd":"/2"}`, "a", "/1", "", false, false},
		{"first string", `{"type":null,"type":3,"type":"b"}`, "b", "", "", false, false},
		{"escaped name", `{"\u0063wd":"/a","t\u0079pe":"u"}`, "u", "/a", "", false, false},
		{"every letter escaped", `{"\u006c\u0069\u006e\u0065\u005f\u0069\u006e\u0064\u0065\u0078":1}`, "", "", "", true, false},
		{"escaped value stays", `{"cwd":"C:\\src\\x"}`, "", `C:\\src\\x`, "", false, false},
		{"long names", `{"` + strings.Repeat("type", 30) + `":"a","` + strings.Repeat(`\n`, 80) + `":"b"}`, "", "", "", false, false},
		{"own line_index", `{"line_index":"x"}`, "", "", "", true, false},
		{"no members", `{ }`, "", "", "", false, true},
		{"inner empty", `{"a":{}}`, "", "", "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := Scan([]byte(tt.line))
			kit.Check(t, l.Shape == Object && l.Start == 0 && l.End == len(tt.line), "Scan(%s): shape %d, [%d:%d]", tt.line,
				l.Shape, l.Start, l.End)
			kit.Check(t, string(l.Type) == tt.typ && string(l.Cwd) == tt.cwd && string(l.SessionID) == tt.session,
				"Scan(%s): type %q, cwd %q, sessionId %q", tt.line, l.Type, l.Cwd, l.SessionID)
			kit.Check(t, l.HasLineIndex == tt.hasIndex && l.Empty == tt.empty, "Scan(%s): has line_index %t, empty %t",
				tt.line, l.HasLineIndex, l.Empty)
		})
	}
}

func TestScanEdges(t *testing.T) {
	line := []byte("  \t{\"a\":1} \r")
	l := Scan(line)
	got := string(line[l.Start:l.End])
	kit.Check(t, l.Shape == Object && got == `{"a":1}`, "object = %q, shape %d", got, l.Shape)
}

// Every cut of a line, and every byte of it replaced, is judged as the oracle does.
func TestScanEveryByte(t *testing.T) {
	line := []byte(`{"a":[-0.5e+7,{"b":"\ud83d\n한"},[],{},true,null], "type":"x"}`)
	for i := range line {
		check(t, line[:i])
		for _, c := range []byte("\x00 \"\\{}[],:0-.eEutf\x80\xff/") {
			damaged := bytes.Clone(line)
			damaged[i] = c
			check(t, damaged)
		}
	}
}

// Every byte at every position of a long string, where eight are judged at once.
func TestScanStrings(t *testing.T) {
	for at := range 20 {
		for c := range 256 {
			line := []byte(`{"a":"` + strings.Repeat("x", 20) + `"}`)
			line[6+at] = byte(c)
			check(t, line)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{
		``, ` `, `{}`, `{ }`, `{"a":1}{"b":2}`, `{"type":"user","cwd":"/a\u00e9","sessionId":"x"}` + "\r",
		`{"line_index":1,"a":[1,2.5e-1,{"b":[]}]}`, `{"a":"\ud83d"}`, `{"\u0074ype":"x"}`, "{\"a\":\"\x00\"}",
		`{"type":"ccship.opaque"}`, `{"a":[[[[{"b":{}}]]]]}`, "\xef\xbb\xbf{}", `[1]`, `{"cwd":1,"cwd":"/x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) { check(t, line) })
}

// check compares Scan with encoding/json.
func check(t *testing.T, line []byte) {
	t.Helper()
	l := Scan(line)
	trimmed := bytes.Trim(line, " \t\r\n")
	valid := json.Valid(line) && utf8.Valid(line) && bytes.HasPrefix(trimmed, []byte("{"))
	valid = valid && bytes.Count(line, []byte("{"))+bytes.Count(line, []byte("[")) <= MaxDepth
	switch {
	case len(trimmed) == 0:
		kit.Require(t, l.Shape == Blank, "Scan(%q).Shape = %d, want Blank", line, l.Shape)
		return
	case !valid:
		kit.Require(t, l.Shape == Malformed, "Scan(%q).Shape = %d, want Malformed", line, l.Shape)
		return
	case l.Shape != Object && l.Shape != Reserved:
		t.Fatalf("Scan(%q).Shape = %d, want Object", line, l.Shape)
	}
	if !bytes.Equal(line[l.Start:l.End], trimmed) {
		t.Fatalf("Scan(%q): object %q", line, line[l.Start:l.End])
	}
	want := members(t, line)
	got := map[string]string{}
	for name, v := range map[string][]byte{"type": l.Type, "cwd": l.Cwd, "sessionId": l.SessionID} {
		if v != nil {
			got[name] = Unquote(v)
		}
	}
	for _, name := range []string{"type", "cwd", "sessionId"} {
		w, in := want[name].(string)
		g, has := got[name]
		kit.Require(t, g == w && has == in, "Scan(%q): %s = %q, %t; want %q, %t", line, name, g, has, w, in)
	}
	if _, in := want["line_index"]; l.HasLineIndex != in || l.Empty != (len(bytes.Trim(trimmed[1:len(trimmed)-1], " \t\r\n")) == 0) {
		t.Fatalf("Scan(%q): has line_index %t, empty %t", line, l.HasLineIndex, l.Empty)
	}
}

// members are the first string of each top-level name, and the first line_index whatever it is.
func members(t *testing.T, line []byte) map[string]any {
	out := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	d.Token()
	for d.More() {
		name := kit.Try(d.Token()).Must(t)
		var v any
		kit.Must(t, d.Decode(&v))
		key := name.(string)
		_, text := v.(string)
		if _, in := out[key]; !in && (text || key == "line_index") {
			out[key] = v
		}
	}
	return out
}

// TestScanAllocates: Scan allocates for ordinary lines only what its documentation says.
func TestScanAllocates(t *testing.T) {
	head := `{"parentUuid":"5f0c1a52-1c5b-4a0e-9d0d-0f6f5f1c2b3a","isSidechain":false,"userType":"external","cwd":"/home/kim/shop",` +
		`"sessionId":"1c0e9b1e-7a51-4f9e-8a42-91d2f0a3c4d5","version":"2.1.328","gitBranch":"main","type":"%s","message":%s` +
		`,"uuid":"8d7c6b5a-4f3e-4d2c-9b1a-0f9e8d7c6b5a","timestamp":"2026-11-20T10:00:00.000Z"}`
	usage := `{"model":"claude","id":"msg_1","type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read",` +
		`"input":{"file_path":"/home/kim/shop/main.go","offset":120,"limit":40}}],"stop_reason":null,"stop_sequence":null,` +
		`"usage":{"input_tokens":4,"cache_creation_input_tokens":1184,"cache_read_input_tokens":18522,"output_tokens":3}}`
	code := strings.Repeat(`\tif err := f.Close(); err != nil {\n\t\treturn fmt.Errorf(\"close: %w\", err)\n\t}\n`, 100)
	korean := strings.Repeat(`대화 히스토리는 서버에 저장되고, 되감기가 있어도 잃지 않는다. `, 60)
	lines := [][]byte{
		fmt.Appendf(nil, head, "assistant", usage),
		fmt.Appendf(nil, head, "user", `{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"`+code+`"}]}`),
		fmt.Appendf(nil, head, "assistant", `{"role":"assistant","content":[{"type":"text","text":"`+korean+`"}]}`),
	}
	for _, line := range lines {
		n := testing.AllocsPerRun(10, func() { Scan(line) })
		kit.Check(t, n == 0 && Scan(line).Shape == Object, "Scan allocated %v times for %.60s", n, line)
	}
}

// TestEscapeName: what servers refuse is escaped so that it can be read back; other names stay.
func TestEscapeName(t *testing.T) {
	for name, want := range map[string]string{
		"0b167cb6-8ac5-4425-8ae4-d39463b3a17c": "0b167cb6-8ac5-4425-8ae4-d39463b3a17c",
		"s/agent-1":                            "s/agent-1", "café ~2": "café ~2", "a\uFFFDb": "a\uFFFDb",
		"odd\x07name": "odd%07name", "100%": "100%25", "%07": "%2507", "\u0085": "%C2%85", "bad\xff": "bad%FF", "\x00": "%00",
	} {
		got := EscapeName(name)
		back, err := url.PathUnescape(got)
		kit.Check(t, got == want && err == nil && back == name, "%q becomes %q, want %q; read back %q, %v", name, got, want, back, err)
	}
}

// TestEscapeLongNames: long names fit, and differ if they differed.
func TestEscapeLongNames(t *testing.T) {
	long := strings.Repeat("\x01", 40<<10)
	a, b := EscapeName(long+"a"), EscapeName(long+"b")
	kit.Check(t, a != b && len(a) <= maxStreamName, "%d bytes, equal: %t", len(a), a == b)
	kit.Check(t, utf8.ValidString(a) && !strings.ContainsFunc(a, unicode.IsControl), "%.80q is refused by servers", a)
}

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

// TestOneLineColours: sequences that colour text in a terminal are no text, also when they are cut off or no such.
func TestOneLineColours(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[1m=== RUN\x1b[0m  Test\n\x1b[31mfails\x1b[0m": "=== RUN Test fails",
		"a\x1b[38;5;12mb": "ab", "a\x1b[": "a", "a\x1b": "a", "a\x1bb": "ab", "a\x1b[1\nb": "ab", "a [1m b": "a [1m b",
		"a\x1b[1\u00e9b": "ab", "\x1b[1m": "",
	} {
		kit.Equal(t, text, OneLine(text, 100), want)
	}
	got := OneLine("\x1b[1mabcdef", 4)
	kit.Check(t, got == "abc…" || got == "abcd…", "cut: %q", got)
}
