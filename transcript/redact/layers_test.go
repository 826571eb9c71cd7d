package redact

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// numbered are the forms in which tools show the lines of a file.
var numbered = map[string]func(n int, line string) string{
	"plain":         func(_ int, line string) string { return line },
	"Read":          func(n int, line string) string { return fmt.Sprintf("%6d→%s", n, line) },
	"Read, newer":   func(n int, line string) string { return fmt.Sprintf("%d\t%s", n, line) },
	"cat -n":        func(n int, line string) string { return fmt.Sprintf("%6d\t%s", n, line) },
	"grep -n":       func(n int, line string) string { return fmt.Sprintf("%d:%s", n, line) },
	"grep -n -C":    func(n int, line string) string { return fmt.Sprintf("%d-%s", n, line) },
	"grep -rn":      func(n int, line string) string { return fmt.Sprintf("config/app-1.yml:%d:%s", n, line) },
	"grep -rn -C":   func(n int, line string) string { return fmt.Sprintf("config/app-1.yml-%d-%s", n, line) },
	"grep -r":       func(_ int, line string) string { return "./deploy/app.yml:" + line },
	"bat":           func(n int, line string) string { return fmt.Sprintf("%4d   │ %s", n, line) },
	"compose":       func(_ int, line string) string { return "db-1  | " + line },
	"diff -u":       func(_ int, line string) string { return "+" + line },
	"grep in diff":  func(n int, line string) string { return fmt.Sprintf("%d:-%s", n, line) },
	"quoted answer": func(_ int, line string) string { return "> " + line },
}

// eachLine changes the lines of a text.
func eachLine(text string, change func(n int, line string) string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = change(i+1, l)
	}
	return strings.Join(lines, "\n")
}

// TestNumberedLines masks what tools show with something before each line, as without it.
func TestNumberedLines(t *testing.T) {
	m := parallel(t)
	for name, file := range map[string]string{
		"YAML":       "db:\n  user: app\n  password: k3Jd81mPq2x\n  port: 5432",
		"properties": "db.user=app\ndb.password=k3Jd81mPq2x\n",
		"netrc":      "machine shop.example\n  login kim\n  password k3Jd81mPq2x\n",
		"env":        "PORT=80\nDB_PASSWORD=k3Jd81mPq2x",
	} {
		for tool, form := range numbered {
			for depth, quotes := range []func(string) string{func(s string) string { return s }, func(s string) string { return quote(s) }} {
				in := `{"type":"user","message":{"content":[{"type":"tool_result","content":` + quote(quotes(eachLine(file, form))) + `}]}}`
				out, ranges := m.Object([]byte(in))
				check(t, m, in, string(out))
				kit.Check(t, !strings.Contains(string(out), "k3Jd81mPq2x") && len(ranges) == 1, "%s by %s, depth %d: %s", name,
					tool, depth, out)
			}
		}
	}
}

// TestLayers masks a secret however it is encoded, and gives it the same token.
func TestLayers(t *testing.T) {
	m := parallel(t)
	const value = "k3Jd81/mPq2+x9"
	text := `password="` + value + `"`
	entities := strings.NewReplacer("k", "&#107;", "J", "&#x4a;", `"`, "&#34;").Replace(text)
	var all strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&all, "%%%02x", c)
	}
	tokens := map[string]bool{}
	for name, in := range map[string]string{
		"plain":                text,
		"percent-encoded":      "https://h.example/?q=" + url.QueryEscape(text),
		"percent-encoded, all": all.String(),
		"twice":                url.QueryEscape(url.QueryEscape(text)),
		"HTML":                 "<p>" + html.EscapeString(text) + "</p>",
		"HTML, by number":      entities,
		"HTML in JSON":         quote(html.EscapeString(text)),
		"zero-width spaces":    strings.ReplaceAll(text, "d", "d\u200b"),
		"a soft hyphen":        strings.ReplaceAll(text, "assw", "as\u00adsw"),
		"joiners, escaped":     strings.ReplaceAll(text, "8", `\u200d8\u2060`),
	} {
		for _, line := range []string{`{"a":` + quote("see "+in+" end") + `}`, `{"a":` + quote(quote([]string{in})) + `}`} {
			out, ranges := m.Object([]byte(line))
			check(t, m, line, string(out))
			if len(ranges) != 1 || strings.Contains(string(plain(out)), value) {
				t.Errorf("%s: %s became %s", name, line, out)
				continue
			}
			token := string(out[ranges[0].Start:ranges[0].End])
			tokens[token[strings.IndexByte(token, ':'):][:9]] = true
		}
	}
	kit.Equal(t, fmt.Sprintf("one secret has the tokens %v", tokens), len(tokens), 1)
}

// TestKnown masks a value wherever else a line has it, if some position shows that it is a secret.
func TestKnown(t *testing.T) {
	m := parallel(t)
	const value = "k3Jd81mPq2x"
	line := `{"uuid":"` + value + `","a":"DB_PASSWORD=` + value + `","b":["it is ` + value + `.","mysql -p` + value + ` ` + value + `s",` +
		quote(quote(map[string]string{"x": value})) + `],"` + value + `":1}`
	out, ranges := m.Object([]byte(line))
	check(t, m, line, string(out))
	if len(ranges) < 3 || strings.Contains(string(out), `it is `+value) || strings.Contains(string(out), `\"`+value) {
		t.Errorf("%s became %s", line, out)
	}
	if !strings.Contains(string(out), `{"uuid":"`+value+`"`) || !strings.Contains(string(out), `"`+value+`":1`) || !strings.Contains(string(out), value+"s") {
		t.Errorf("too much is masked: %s", out)
	}
	text := "password: " + value + "\n" + strings.Repeat("words\n", segment/4) + value
	if out, ranges := m.Text([]byte(text)); len(ranges) != 2 || strings.Contains(string(out), value) {
		t.Errorf("in a long text %d places are masked", len(ranges))
	}
}

// TestChanges finds the tokens of any key, and puts them back in place; nothing else passes as masked.
func TestChanges(t *testing.T) {
	m := parallel(t)
	text := []byte(`{"a":"use ` + secret + ` and \"` + secret + `\"","b":"export DB_PASSWORD=ab12cd now ***"}`)
	masked, ranges := m.Object(text)
	list, only := Changes(text, masked)
	kit.Require(t, only && len(list) == 3 && len(ranges) == 3, "%v %v of %v in %s", only, list, ranges, masked)
	again, err := Overlay(text, list)
	kit.Check(t, err == nil && bytes.Equal(again, masked), "%s, %v", again, err)
	list, only = Changes(text, text)
	kit.Check(t, only && list == nil, "no difference: %v", list)
	for name, other := range map[string][]byte{
		"another word":   bytes.Replace(masked, []byte("use"), []byte("USE"), 1),
		"shorter":        masked[:len(masked)-1],
		"many asterisks": bytes.Replace(text, []byte(secret), bytes.Repeat([]byte("*"), len(secret)), 1),
		"an open token":  bytes.Replace(masked, []byte("] and"), []byte("x and"), 1),
	} {
		list, only := Changes(text, other)
		kit.Check(t, !only, "%s is masked text: %v", name, list)
	}
}

// TestOverlayRefuses: what is not a token, lies outside, or overlaps changes nothing.
func TestOverlayRefuses(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("words ", 20))
	token := "[a:" + strings.Repeat("b", 10) + "]"
	for name, list := range map[string][]Token{
		"a word":          {{0, "other"}},
		"nothing":         {{3, ""}},
		"token and more":  {{0, token + " x"}},
		"before":          {{-1, token}},
		"behind":          {{len(text) - 3, token}},
		"far behind":      {{1 << 40, token}},
		"overlapping":     {{0, token}, {5, token}},
		"wrong order":     {{50, token}, {0, token}},
		"eleven *":        {{0, strings.Repeat("*", mostAsterisks+1)}},
		"quote in a rule": {{0, `["a":bbbbbbbbbb]`}},
	} {
		out, err := Overlay(text, list)
		kit.Check(t, errors.Is(err, ErrNoToken), "%s: %s, %v", name, out, err)
	}
	if out, err := Overlay(text, []Token{{0, token}, {30, "****"}}); err != nil || len(out) != len(text) ||
		slices.Equal(out, text) {
		t.Errorf("%s, %v", out, err)
	}
}

// TestSameStrings: a token may not swallow the end of a string.
func TestSameStrings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":"b\"c","d":"e"}`, `{"a":"*****","d":"e"}`, false},
		{`{"a":"bcccc","d":"e"}`, `{"a":"*****","d":"e"}`, true},
		{`{"a":"b\\","d":"e"}`, `{"a":"***","d":"e"}`, true},
		{`{"a":"b","d":"e"}`, `{"a":"***********"}`, false},
		{`{}`, `{}`, true},
	} {
		got := SameStrings([]byte(c.a), []byte(c.b))
		kit.Check(t, got == c.same, "%s and %s: %v", c.a, c.b, got)
	}
}

// TestClean: what a string of many lines hides is found in each of them, and whatever its name is: no string counts as
// clean because the same bytes were searched before where nothing tells that they are a secret. An escape makes the
// masker look at each string.
func TestClean(t *testing.T) {
	m := parallel(t)
	text := strings.Repeat("Kx7", leastClean/3) + "q9Zr4"
	for range 3 {
		for _, name := range []string{"content", "stdout", "text"} {
			for _, words := range []string{"words " + strings.Repeat("and more words ", leastClean), text} {
				in := `{"type":"user","url":"%41","` + name + `":"` + words + `"}`
				out, ranges := m.Line([]byte(in))
				kit.Check(t, string(out) == in && len(ranges) == 0, "%s: %.80s: %v", name, in, ranges)
			}
		}
		for _, name := range []string{"password", "api_key"} {
			in := `{"type":"user","` + name + `":"` + text + `"}`
			_, ranges := m.Line([]byte(in))
			kit.Check(t, len(ranges) == 1, "%s: %.80s stays", name, in)
		}
		long := strings.Repeat("some words ", leastClean) + secret
		out, ranges := m.Line([]byte(`{"type":"user","toolUseResult":{"stdout":"` + long + `"},"content":"` + long + `"}`))
		kit.Check(t, len(ranges) == 2 && !strings.Contains(string(out), secret), "%d ranges", len(ranges))
	}
}

// TestCounter counts tokens, however they are written.
func TestCounter(t *testing.T) {
	m := parallel(t)
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0B\n", 9) + "-----END PRIVATE KEY-----"
	text, ranges := m.Text([]byte(strings.Repeat("a "+secret+" b "+key+" [1] x[i:j] ", 5)))
	for _, piece := range []int{1, 7, 64, len(text)} {
		var c Counter
		for rest := text; len(rest) > 0; {
			n := min(piece, len(rest))
			wrote, err := c.Write(rest[:n])
			kit.Require(t, wrote == n && err == nil, "%v %v", wrote, err)
			rest = rest[n:]
		}
		kit.Check(t, c.N == int64(len(ranges)) && c.N == 10, "in pieces of %d: %d tokens, want %d", piece, c.N,
			len(ranges))
	}
}

// TestExplain proves what was masked, whatever rules there are now.
func TestExplain(t *testing.T) {
	t.Parallel()
	old, now := masker(t, Rule{Name: "ours", Pattern: `ours_[a-z0-9]{12,}`, Literals: []string{"ours_"}}), masker(t)
	foreign := kit.Try(New(Key{9})).Must(t)
	filler := strings.Repeat("words ", 2000)
	disk := []byte(`{"a":"` + filler + `use ` + secret + ` and ours_k3j5h7g9k3j5h7g9k3j5, export DB_PASSWORD=ab12cd ` + filler + `\n"}`)
	held, ranges := old.Object(disk)
	kit.Require(t, len(ranges) == 3, "%v", ranges)
	e, ok := now.Explain(disk, held)
	kit.Check(t, ok && e == (Explanation{2, 1}), "%v %+v", ok, e)
	e, ok = now.Explain(disk, disk)
	kit.Check(t, ok && e == (Explanation{}), "no difference: %v %+v", ok, e)
	other := bytes.Replace(disk, []byte("EFGH"), []byte("EFGX"), 1)
	token := ranges[0]
	for name, c := range map[string]struct {
		m          *Masker
		disk, held []byte
	}{
		"another key":      {foreign, disk, held},
		"no key":           {nil, disk, held},
		"another secret":   {now, other, held},
		"shorter":          {now, disk, held[:len(held)-1]},
		"another word":     {now, disk, bytes.Replace(held, []byte("use"), []byte("USE"), 1)},
		"a wrong token":    {now, disk, wrongHash(held, token.Start)},
		"a token too many": {now, disk, append(bytes.Clone(held[:9]), append([]byte("[:aaaaaaaaaa]"), held[22:]...)...)},
		"many asterisks":   {now, disk, bytes.Replace(held, []byte("words words "), []byte("************"), 1)},
		"last byte":        {now, disk, append(bytes.Clone(held[:len(held)-1]), ']')},
	} {
		e, ok := c.m.Explain(c.disk, c.held)
		kit.Check(t, !ok, "%s is explained: %+v", name, e)
	}
	short := bytes.Replace(disk, []byte("ab12cd"), []byte("xy34zw"), 1)
	if e, ok := now.Explain(short, held); !ok || e.Unproven != 1 {
		t.Errorf("another short secret: %v %+v", ok, e)
	}
}

// wrongHash changes one character of a token's hash.
func wrongHash(held []byte, token int) []byte {
	b := bytes.Clone(held)
	at := token + bytes.IndexByte(b[token:], ':') + 3
	if b[at] == 'a' {
		b[at] = 'b'
	} else {
		b[at] = 'a'
	}
	return b
}

// FuzzExplain masks a text by the rules, which must explain it, and a text that was changed elsewhere, which they must not.
func FuzzExplain(f *testing.F) {
	m := masker(f)
	f.Add([]byte(`{"a":"\nAKIAQ3EGSDFKJ4KKAX2Z TOKEN=ab12cd \"ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234\""}`), 3)
	f.Add([]byte("DB_PASSWORD=ab12cd ***"), 0)
	f.Fuzz(func(t *testing.T, disk []byte, at int) {
		held, ranges := m.Line(disk)
		e, ok := m.Explain(disk, held)
		kit.Require(t, ok && e.Proven+e.Unproven <= len(ranges), "%q became %q, which is not explained: %+v, %v", disk, held, e, ranges)
		if len(held) == 0 {
			return
		}
		at = int(uint(at) % uint(len(held)))
		for _, r := range ranges {
			if at >= r.Start && at < r.End {
				return
			}
		}
		other := bytes.Clone(held)
		if other[at] = disk[at] ^ 1; other[at] == '*' {
			return
		}
		_, ok = m.Explain(disk, other)
		kit.Require(t, !ok, "%q is explained as %q", disk, other)
	})
}

// TestCleanByRules: a rule of a person may say of which member a string is a secret.
func TestCleanByRules(t *testing.T) {
	m := parallel(t, Rule{Name: "own", Pattern: `"stdout":\s*"([ a-z]{300,})`, Literals: []string{"stdout"}})
	text := strings.Repeat("some words ", leastClean)
	for range 2 {
		_, ranges := m.Line([]byte(`{"type":"user","url":"%41","content":"` + text + `","toolUseResult":{"stdout":"` + text + `"}}`))
		kit.Check(t, len(ranges) == 2, "%d ranges", len(ranges))
	}
}
