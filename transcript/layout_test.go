package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"

	"github.com/ccship/ccship/e2e/kit"
)

// TestLayout: different views never have one digest, whatever is left out where, and one of which every line is there
// has that of its bytes.
func TestLayout(t *testing.T) {
	notes := map[string]Oversize{
		"long": {Offset: 1, Length: 2}, "later": {Offset: 2, Length: 2}, "longer": {Offset: 1, Length: 3}, "other": {Offset: 1, Length: 2, SHA256: [32]byte{1}},
	}
	kinds := []string{"", "a", "b", "g", "missing", "long", "later", "longer", "other"}
	seen := map[string][]string{}
	var try func(view []string)
	try = func(view []string) {
		h, whole := sha256.New(), true
		var layout Layout
		for i, what := range view {
			note, over := notes[what]
			switch {
			case what == "missing":
				whole = false
			case over:
				whole = false
				layout.Oversize(int64(i), note)
			default:
				layout.Line(int64(i))
				h.Write([]byte(what + "\n"))
			}
		}
		bytes := h.Sum(nil)
		sum := string(layout.Sum(int64(len(view)), bytes))
		other, twice := seen[sum]
		kit.Check(t, !twice, "%q and %q have one digest", other, view)
		if seen[sum] = append([]string{}, view...); whole != (sum == string(bytes)) {
			t.Errorf("%q: all there %t, the digest of the bytes %t", view, whole, sum == string(bytes))
		}
		if len(view) == 4 {
			return
		}
		for _, k := range kinds {
			try(append(view, k))
		}
	}
	try(nil)
	kit.Equal(t, "digests", len(seen), 1+9+81+729+6561)
}

// TestLayoutGoesOn: a copy goes on by itself, and missing lines count the same however they are given.
func TestLayoutGoesOn(t *testing.T) {
	var a Layout
	a.Line(0)
	b := a
	b.Line(3)
	a.Line(2)
	x, y := string(a.Sum(5, nil)), string(b.Sum(5, nil))
	kit.Check(t, x != y && a.Next() == 3 && b.Next() == 4, "copies are one")
	c := Layout{}
	c.Line(0)
	_ = c.Sum(2, nil) // a digest on the way changes nothing
	c.Line(2)
	kit.Equal(t, "a digest on the way counts", string(a.Sum(5, nil)), string(c.Sum(5, nil)))
}

func TestRecover(t *testing.T) {
	a := `{"parentUuid":null,"type":"user","message":{"content":[{"type":"text","text":"hi {\"type\":1} 한"}]}}`
	b := `{"type":"summary","summary":"s"}`
	c := `{"parentUuid":"x","cwd":"/c"}`
	nul := strings.Repeat("\x00", 300)
	hangul := `{"summary":"` + strings.Repeat("한", 300) + `"}`
	tests := []struct {
		name, line string
		want       []string
	}{
		{"glued", a + b, []string{a, b}},
		{"three glued, spaced", a + " " + b + "\t" + c + "\r", []string{a, b, c}},
		{"NULs before", nul + a, []string{a}},
		{"NULs between", a + nul + b, []string{a, b}},
		{"NULs inside", a[:40] + nul + a[40:], []string{a}},
		{"NULs alone", nul, nil},
		{"byte order mark", "\xef\xbb\xbf" + a, []string{a}},
		{"cut in a string", `{"parentUuid":null,"text":"ab` + b, []string{b}},
		{"cut in an escape", `{"parentUuid":null,"text":"ab\` + b, []string{b}},
		{"cut in a code point", `{"parentUuid":null,"text":"\u00` + b, []string{b}},
		{"cut in a character", `{"parentUuid":null,"text":"` + "\xed\x95" + b, []string{b}},
		{"cut in a name", `{"parentUuid":null,"te` + b, []string{b}},
		{"cut behind a name", `{"parentUuid":null,"text"` + b, []string{b}},
		{"cut behind a colon", `{"parentUuid":null,"text":` + b, []string{b}},
		{"cut behind a comma", `{"parentUuid":null,` + b, []string{b}},
		{"cut in a list", `{"parentUuid":null,"a":[{"type":"text"},` + b, []string{b}},
		{"cut in a list of a list", `{"parentUuid":null,"a":{"type":"m","b":[{"type":"text","c":` + b, []string{b}},
		{"cut behind an object in a list", `{"parentUuid":null,"a":[{"type":"text"}` + b, []string{b}},
		{"cut in a number", `{"parentUuid":null,"text":12` + b, []string{b}},
		{"cut in a word", `{"parentUuid":null,"text":tr` + b, []string{b}},
		{"cut before its end", a[:len(a)-1] + b, []string{b}},
		{"cut twice", a[:50] + c[:9] + b, []string{b}},
		{"cut, then glued", a[:50] + b + c, []string{b, c}},
		{"whole, then cut", a + b[:9], []string{a}},
		{"torn", a[:50], nil},
		{"rest of a record, then one", a[60:] + b, []string{b}},
		{"rest of a record", a[60:], nil},
		{"too many braces", b + "}", []string{b}},
		{"invalid UTF-8 inside", `{"type":"a","b":"` + "\xff" + `","c":{"type":"text"}}` + c, []string{c}},
		{"another encoding", "{\"type\":\"a\",\"b\":\"caf\xe9\"}", []string{"{\"type\":\"a\",\"b\":\"caf\uFFFD\"}"}},
		{"UTF-16, its first line", "\xff\xfe" + wide(a, binary.LittleEndian), []string{a}},
		{"UTF-16, another line", "\x00" + wide(a, binary.LittleEndian), []string{a}},
		{"UTF-16, hardly ASCII", "\x00" + wide(hangul, binary.LittleEndian), []string{hangul}},
		{"UTF-16, the other order", "\xfe\xff" + wide(a, binary.BigEndian) + "\x00", []string{a}},
		{"array", `[{"type":"a"},{"type":"b"}]`, []string{`{"type":"a"}`, `{"type":"b"}`}},
		{"array, its first line", " [ " + a + ",", []string{a}},
		{"array, several on a line", "[" + a + " , " + b + ",", []string{a, b}},
		{"array, its last line", a + "]\r", []string{a}},
		{"array, cut", "[" + a + "," + b[:9], []string{a}},
		{"array of arrays", `[[{"type":"a"},1],2]`, nil},
		{"rest of a record that begins with a list", `[{"type":"text","text":"x"}],"id":"m"}}` + b, []string{b}},
		{"text", "no record at all", nil},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Recover([]byte(tt.line))
			kit.Equal(t, fmt.Sprintf("Recover(%.80q) = %q, want %q", tt.line, got, tt.want),
				string(bytes.Join(got, []byte("\n"))), strings.Join(tt.want, "\n"))
		})
	}
}

// TestUnread: a line without a record is named by what it is, so that nothing whole passes for damage.
func TestUnread(t *testing.T) {
	const text = `{"type":"user","message":{"content":"ਅ and Ċ"},"cwd":"/a"}`
	for _, file := range []string{"\xff\xfe" + wide(text+"\r\n", binary.LittleEndian), "\xfe\xff" + wide(text+"\n", binary.BigEndian)} {
		for i, line := range strings.Split(strings.TrimSuffix(file, "\n"), "\n") {
			kit.Check(t, len(Records([]byte(line))) == 0, "piece %d has a record: %q", i, line)
			kit.Equal(t, fmt.Sprintf("piece %d of UTF-16: %q", i, line), Unread([]byte(line)), UnreadUTF16)
		}
	}
	for _, indent := range []string{"", " ", "\t"} {
		var b bytes.Buffer
		kit.Must(t, json.Indent(&b, []byte(`[{"type":"a","b":[1,-2.5e3,null,"c,d: {"],"e":{},"f\"g":true},{"b":[[],["x"]]}]`), "", indent))
		for line := range strings.Lines(b.String()) {
			if len(Records([]byte(line))) == 0 {
				kit.Equal(t, "piece "+line, Unread([]byte(line)), UnreadPiece)
			}
		}
	}
	for _, line := range []string{`{"type":"a","b":"to`, `rn","c":1}`, "no record", strings.Repeat("\x00", 500), "\xff\xfe", `"a": tr`} {
		kit.Equal(t, fmt.Sprintf("%.40q", line), Unread([]byte(line)), UnreadDamaged)
	}
}

// wide returns a text in UTF-16.
func wide(text string, order binary.AppendByteOrder) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// A record cut anywhere never hides the whole one behind it.
func TestRecoverEveryCut(t *testing.T) {
	a := []byte(`{"parentUuid":null,"a":[-1.5e3,{"type":"x\ud83d\"한"},[],{}],"b":true}`)
	b := []byte(`{"type":"user","cwd":"/b"}`)
	for i := range a {
		got := Recover(append(bytes.Clone(a[:i]), b...))
		kit.Check(t, len(got) != 0 && bytes.Equal(got[len(got)-1], b), "cut at %d: %q", i, got)
	}
}

// Starts of records that never end must not cost the square of the line.
func TestRecoverTerminates(t *testing.T) {
	start := time.Now()
	Recover(bytes.Repeat([]byte(`{"type":`), 1<<17))
	Recover(bytes.Repeat([]byte(`{"type":[`), 1<<17))
	Recover(bytes.Repeat([]byte(`{"type":"a`), 1<<17))
	Recover(bytes.Repeat([]byte(`{`), 1<<20))
	Recover([]byte(strings.Repeat(`{"type":`, MaxDepth-1) + `"` + strings.Repeat("x", 32<<20)))
	if d := time.Since(start); d > 20*time.Minute { // the square of these would be hours
		t.Errorf("took %v", d)
	}
}

func FuzzRecover(f *testing.F) {
	f.Add([]byte(`{"type":"a"}{"type":"b"}`))
	f.Add([]byte("{\"parentUuid\":\"x{\"type\":1}\x00"))
	f.Add([]byte(`{"type":{"type":[{"type":1},{"parentUuid":2}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, object := range Recover(line) {
			l := Scan(object)
			kit.Require(t, (l.Shape == Object || l.Shape == Reserved) && l.Start == 0 && l.End == len(object),
				"Recover(%q): %q is no object", line, object)
		}
		if l := Scan(line); l.Shape == Object {
			got := Recover(line)
			kit.Require(t, len(got) == 1 && bytes.Equal(got[0], line[l.Start:l.End]), "Recover(%q) = %q", line, got)
		}
	})
}

func TestCompose(t *testing.T) {
	for _, text := range []string{"", "plain", "한국어 정산", "réservé — naïve", "e\u0301", "ab\xff\u0301c", "ﬁ Å \u212b"} {
		for _, form := range []norm.Form{norm.NFC, norm.NFD} {
			if got := Compose(form.String(text)); got != norm.NFC.String(text) {
				t.Errorf("%q: %q, want %q", form.String(text), got, norm.NFC.String(text))
			}
		}
	}
	n := testing.AllocsPerRun(10, func() { Compose("plain, then 정산") })
	kit.Check(t, n <= 0, "%v allocations for a composed text", n)
}

func TestElements(t *testing.T) {
	for array, want := range map[string]string{
		`[]`: "", `[ "a" , {"b":[1]} ,2]`: `"a" {"b":[1]} 2`, `{"a":1}`: "", `"[1]"`: "", `["[","]"]`: `"[" "]"`, "": "", "null": "",
	} {
		var got []string
		for e := range Elements([]byte(array)) {
			got = append(got, string(e))
		}
		kit.Equal(t, array, strings.Join(got, " "), want)
	}
	if first := slices.Collect(func(yield func(string) bool) {
		for e := range Elements([]byte(`["a\u0062","c"]`)) {
			if !yield(StringOf(e)) {
				return
			}
		}
	}); !slices.Equal(first, []string{"ab", "c"}) {
		t.Errorf("decoded: %q", first)
	}
}

func TestFolderName(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/kim/shop": "shop", "/home/kim/shop/": "shop", "/": "/", `C:\Users\dev\source\shop`: "shop", `c:/src/shop`: "shop",
		`\\wsl.localhost\Ubuntu\home\dev\shop`: "shop", `\\server\share\`: "share", `/home/kim/a\b`: `a\b`, "/mnt/c/src/shop": "shop",
		"/home/kim/my shop": "my shop", `C:\src\shop\`: "shop", "": "",
	} {
		kit.Equal(t, dir, FolderName(dir), want)
	}
}

func TestRepositoryOf(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/kim/shop": "/home/kim/shop", "/home/kim/shop/.claude/worktrees/fix/cmd": "/home/kim/shop",
		`C:\src\shop\.claude\worktrees\fix`: `C:\src\shop`, "": "",
	} {
		kit.Equal(t, dir, RepositoryOf(dir), want)
	}
}

func TestMayAsk(t *testing.T) {
	for _, x := range []struct {
		mode, tool, path, cwd string
		want                  bool
	}{
		{"default", "Bash", "", "/w", true}, {"", "mcp__x__y", "", "/w", true}, {"acceptEdits", "Bash", "", "/w", true},
		{"bypassPermissions", "Bash", "", "/w", false}, {"dontAsk", "Write", "/etc/x", "/w", false},
		{"default", "Read", "/w/a.go", "/w", false}, {"default", "Read", "/w", "/w/", false}, {"default", "Read", "/work/a.go", "/w", true},
		{"default", "Read", "/w/../etc/x", "/w", true}, {"default", "Read", "~/x", "/w", true}, {"default", "Read", "/w/a.go", "", true},
		{"default", "Grep", "", "/w", false}, {"default", "Glob", "src", "/w", false}, {"default", "Read", `C:\w\a.go`, `C:\w`, false}, {"default", "Read", `D:\w\a.go`, `C:\w`, true},
		{"default", "Edit", "/w/a.go", "/w", true}, {"acceptEdits", "Edit", "/w/a.go", "/w", false}, {"acceptEdits", "Write", "/etc/x", "/w", true},
		{"acceptEdits", "Write", "", "/w", true}, {"plan", "Read", "/w/a.go", "/w", false}, {"default", "TodoWrite", "", "", false},
		{"default", "web_search", "", "/w", false}, {"default", "advisor", "", "/w", false}, {"default", "WebSearch", "", "/w", true},
	} {
		kit.Equal(t, fmt.Sprintf("%+v", x), MayAsk(x.mode, x.tool, x.path, x.cwd), x.want)
	}
}
