package redact

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSearchFindsAll compares the search with a naive one, over texts made from pieces of the literals: those at the
// very beginning and end of a text, overlapping ones, and literals of the shortest and of longer lengths.
func TestSearchFindsAll(t *testing.T) {
	m := masker(t)
	s := m.search
	rng := rand.New(rand.NewPCG(1, 2))
	hiding := []string{`\/`, `\u0041`, `\u007F`, `\u001b`, `\u200B`, `\u2063`, `\ufeff`, "\u200b", "\u2014", "\u2063", "\ufeff", "\u00ad"}
	for n := range 4_000 {
		var text []byte
		if n%40 == 0 { // the literals are near the end of a block
			text = bytes.Repeat([]byte("~"), blockSize-40+rng.IntN(48))
		}
		for range rng.IntN(6) {
			l := s.literals[rng.IntN(len(s.literals))].text
			from := rng.IntN(len(l))
			if rng.IntN(3) > 0 {
				from = 0
			}
			text = append(text, l[from:]...)
			for range rng.IntN(3) {
				text = append(text, "aK_/ \"\\~"[rng.IntN(8)])
			}
			if rng.IntN(4) == 0 {
				text = append(text, hiding[rng.IntN(len(hiding))]...)
			}
		}
		var want []hit
		for at := range text {
			for n, l := range s.literals {
				if l.matches(text[at:]) {
					want = append(want, hit{at, n})
				}
			}
		}
		got := s.find(nil, text, new(block))
		byPlace := func(a, b hit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.literal, b.literal)) }
		slices.SortFunc(got, byPlace)
		slices.SortFunc(want, byPlace)
		kit.Require(t, slices.Equal(got, want), "in %q: %v, want %v", text, got, want)
	}
}

// TestAutomaton: an automaton never says that a text does not match an expression that it matches, and is right whenever
// it is sure. What is made for one text is right for the next one.
func TestAutomaton(t *testing.T) {
	expressions := []string{
		`^a+$`, `(?m)^b$`, `\bkey\b`, `\Bkey`, `(?i)ſk|K`, `[^a-z]\z`, `\A(?:é|x)[^é]`, `a.c`, `(?s)a.c`, `(?:ab){2,4}c`,
		`(?:^|[^a-z])pass[\w-]{0,60}=$`, `x{3,40}y`, `(?:a|b)*c{0}$`, `\n\b`,
	}
	for _, r := range masker(t).rules {
		if !r.Token {
			expressions = append(expressions, r.expression().String())
		}
	}
	type pair struct {
		re           *regexp.Regexp
		exact, loose *automaton
	}
	var all []pair
	for _, text := range expressions {
		all = append(all, pair{regexp.MustCompile(text), newAutomaton(text, false), newAutomaton(text, true)})
	}
	parts := []string{ // short ones first
		"a", "b", "c", "é", "ſ", "K", "\xff", "\n", "x", "y", "\u212a", " ", "key", "pass", "password", "api_key", "secret", "token", "=", ":", `"`,
		"'", "Zx81kQ9vLm3pRt7wYb2c", "hunter2hunter2", "/", "-", "--", ">", "<", "name", "value", "mysql", "-p", "://", "@h.de",
	}
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SliceOfN(rapid.SampledFrom(parts), 1, 5).Draw(t, "few")
		if rapid.Bool().Draw(t, "short") {
			few = parts[:10]
		}
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(few), 0, 12).Draw(t, "parts"), ""))
		for _, p := range all {
			want := p.re.Match(text)
			for _, a := range []*automaton{p.exact, p.loose} {
				if got, sure := a.matches(text); want && !got || got != want && sure {
					t.Fatalf("%s: %t (sure: %t) for %q, want %t", p.re, got, sure, text, want)
				}
			}
		}
	})
}

// TestAutomatonForgets: a text for which ever more states are made keeps few of them.
func TestAutomatonForgets(t *testing.T) {
	const expression = `a[ab]{12}c`
	a, re := newAutomaton(expression, false), regexp.MustCompile(expression)
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("aab")), 20, 60, -1).Draw(t, "text") + rapid.SampledFrom([]string{"c", "", "d"}).Draw(t, "end"))
		if got, _ := a.matches(text); !got && re.Match(text) {
			t.Fatalf("no match in %q", text)
		}
		if len(a.states) > mostStates {
			t.Fatalf("%d states", len(a.states))
		}
	})
}

// TestLinear: four times as much text takes about four times as many steps, of quick checks and of expressions, where
// 16 times would be quadratic, whatever is repeated in it. No other test runs beside it, as it counts for all.
func TestLinear(t *testing.T) {
	m := masker(t)
	defer func() { looked = nil }()
	work := func(text string) (total int) {
		looked = &total
		m.mask([]byte(text), func(s *scratch, b []byte) {
			s.work = 0
			m.inAny(s, b)
			total += s.work
		})
		return total
	}
	names := []string{"", "password", "password=", "password=a1", "x_token: ", "AKIA", "://", "a+", "-p ", "curl ", "login ", "sudo ", "api key ",
		"identified ", "cookie: ", "bearer ", "auth(", "sentry ", "--token ", "<secret>", `{"pass":"`, "password: |\n", "name: db_secret ",
		"passwords:\n", "[users]\na=", "chpasswd: list: ", "insert (a, password) values (", "getenv('password', ", "secret | default(", "token=%s\", ",
		"password').fill(", "send(", "hash_hmac(a,", "bind('a=b',", "jwt: { key: ", "smtp.a.b ", "client_send = :", `"attributes" result`, "password is ",
		":::", " on >", "AUTH ", "a * ", "echo a | login ", "<(echo ", "vault kv put ", "infura.io/a/", "user = a:", "-----BEGIN OpenVPN a key-----"}
	runs := []string{"=", ":", ",", "},", "=,", " ", "\t", "\n", `"`, "'", "\\", `\n`, `\\n`, `\"`, "(", "[", "{", "<", "-", ".", "+", "%41", "&amp;", "&#", "/", "@",
		"|", "a", "aB", "1a", "_", "a=", "\u200b", `\u0041`, "*", "é", "|\n", "a,", "a "}
	const n, most = 1 << 10, 400 // most: steps a byte
	worst, slowest := 0, ""
	for _, name := range names {
		for _, run := range runs {
			for form, text := range map[string]func(size int) string{
				"a run": func(size int) string { return name + strings.Repeat(run, size/len(run)) },
				"both":  func(size int) string { return strings.Repeat(name+run, size/len(name+run)) },
				"short runs": func(size int) string {
					return strings.Repeat(name+strings.Repeat(run, 60)+" ", 1+size/len(name+run)/60)
				},
			} {
				small, large := text(n), text(4*n)
				first, then := work(small), work(large)
				if limit := 8*first + 1<<14; then > limit {
					t.Errorf("%s of %q and %q: %d steps for %d bytes, %d for %d", form, name, run, first, len(small), then, len(large))
				}
				if each := then / len(large); name == "" && each > 40 {
					t.Errorf("%s of %q: %d steps a byte", form, run, each)
				} else if each > worst {
					worst, slowest = each, form+" of "+name+run
				}
			}
		}
	}
	t.Logf("%d names, %d runs; the worst, %q, takes %d steps a byte", len(names), len(runs), slowest, worst)
	kit.Check(t, worst <= most, "%q takes %d steps a byte", slowest, worst)
}

// TestHostileTexts: no text makes masking more than a fixed amount of work for each of its bytes. A file in a cloned
// repository would else hold up everything.
func TestHostileTexts(t *testing.T) {
	m := parallel(t)
	const n = 1 << 12
	all := map[string]string{
		"a long scheme":         strings.Repeat("a", n) + "://a:b1234567c@host",
		"a long variable":       strings.Repeat("A", n) + "SECRET=abc12345x",
		"variables in one word": strings.Repeat(strings.Repeat("A", 500)+"TOKEN", n/505) + "=abc12345x",
		"a long indent":         strings.Repeat(" ", n) + "password: abcdef12",
		"a long cookie":         strings.Repeat("cookie: a=bbbbbbbb; "+strings.Repeat("b", 600), n/620),
		"a long value":          strings.Repeat("password="+strings.Repeat("a", 500), n/509) + `"`,
		"tokens and keys":       strings.Repeat("[a:aaaaaaaa] AKIAQ3EGSDFKJ4KKAX2Z ", n/34),
		"headers of a JWT":      strings.Repeat("eyJaaaaaaaaaaaaa.", n/17),
	}
	for _, r := range m.rules {
		for _, l := range r.Literals {
			all["only "+l] = strings.Repeat(l, n/len(l))
			all["words "+l] = strings.Repeat(l+" ", n/(len(l)+1))
			all["runs of "+l] = strings.Repeat(l+"-", n/(len(l)+1))
		}
	}
	worst, slowest := 0, ""
	for name, text := range all {
		work := 0
		for _, in := range []string{text, `{"a":` + quote(quote(text)) + `}`} {
			out, _ := m.mask([]byte(in), func(s *scratch, b []byte) {
				s.work = 0
				if in == text {
					m.inText(s, b)
				} else {
					m.inObject(s, b)
				}
				work += s.work
			})
			kit.Check(t, len(out) == len(in), "%s: %d bytes became %d", name, len(in), len(out))
		}
		if each := work / (2 * n); each > worst {
			worst, slowest = each, name
		}
	}
	t.Logf("%d texts of %d bytes; the worst, %q, is looked at %d times", len(all), n, slowest, worst)
	kit.Check(t, worst <= 256, "%q: every byte is looked at %d times", slowest, worst)
}

// TestNearAgrees: the quick checks see what the expressions of the rules see: far values, unusual ends, deep escapes.
func TestNearAgrees(t *testing.T) {
	m := parallel(t)
	const secret, key = "hQ7zk2Wp9x", "a8f2k9d0s7q1w3e5r6t8y2u4"
	far := strings.Repeat(" ", 20)
	for _, text := range []string{
		"password:" + far + secret,
		"  password:" + far + `"` + secret + `"`,
		"db.password=" + far + secret,
		"password:\n" + far + secret,
		"password:\r\n  " + secret,
		"<password>\n" + far + secret + "\n</password>",
		"<password><![CDATA[" + secret + "]]></password>",
		"datadog_app" + far + `= "` + key + `"`,
		"datadog_app =" + far + `"` + key + `"`,
		"\"Password\" :\t\"" + secret + `"`,
		`WiFi.begin("net", "` + secret + `")`,
		"olcRootPW: " + secret,
		`{"pw":"` + secret + `"}`,
	} {
		want := strings.NewReplacer(secret, "", key, "").Replace(text)
		for layers := range 4 {
			out := m.String(text)
			kit.Check(t, !strings.Contains(out, secret) && !strings.Contains(out, key), "%q below %d layers stays", want, layers)
			text = `{"content":` + quote(text) + `}`
		}
	}
}
