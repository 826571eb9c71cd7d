package redact

import (
	"fmt"
	"github.com/ccship/ccship/e2e/kit"
	"html"
	"net/url"
	"strings"
	"testing"
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
