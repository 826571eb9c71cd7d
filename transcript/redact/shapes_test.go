package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/planted"
)

// pemLines are the lines of a private key.
func pemLines() []string {
	body := strings.SplitN(strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 6), "\n", 6)
	body[5] = "Qw/PgA4xz=="
	return append(append([]string{"-----BEGIN PRIVATE KEY-----"}, body...), "-----END PRIVATE KEY-----")
}

// each puts a text before each line.
func each(before string, lines []string) string { return before + strings.Join(lines, "\n"+before) }

// TestKeysInPieces masks private keys however tools show them.
func TestKeysInPieces(t *testing.T) {
	t.Parallel()
	m, lines := masker(t), pemLines()
	const base64Line, last = "MIIEvQIBADANBgkqhkiG9w0B", "Qw/PgA4xz"
	patch := func(before string, lines []string) string {
		var all []string
		for _, l := range lines {
			all = append(all, before+l)
		}
		return `{"toolUseResult":{"structuredPatch":[{"oldStart":1,"lines":` + quote(append(all, "+# the end")) + `},{"lines":["` + kept + `"]}]}}`
	}
	text := func(s string) string { return `{"a":` + quote("see\n"+s+"\nend") + `}` }
	for name, in := range map[string]string{
		"quoted":                text(each("> ", lines)),
		"quoted, cut":           text(each("> ", lines[:6])),
		"found by grep, cut":    text(each("deploy/key.pem:12:", lines[:6])),
		"removed, cut":          text(each("-", lines[:6])),
		"numbered, from line 3": text(each("     3→", lines[2:])),
		"the end of a file":     text(each("", lines[3:])),
		"a nested array, cut":   text(quote(lines[:6])),
		"a patch":               patch("+", lines),
		"a patch, cut":          patch(" ", lines[:6]),
		"the end of a patch":    patch("-", lines[2:]),
		"a notebook's lines":    `{"toolUseResult":` + quote(strings.SplitAfter(each("", lines), "\n")) + `}`,
	} {
		out, _ := m.Object([]byte(in))
		check(t, m, in, string(out))
		if strings.Contains(string(out), base64Line) || strings.Contains(name, "patch") && strings.Contains(string(out), last) {
			t.Errorf("%s: %s", name, out)
		}
		if strings.Contains(in, kept) != strings.Contains(string(out), kept) || strings.Contains(in, "# the end") != strings.Contains(string(out), "# the end") {
			t.Errorf("%s: too much is masked: %s", name, out)
		}
	}
}

// kept is base64 that belongs to no key.
const kept = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"

// TestColours masks secrets in what was written for a terminal.
func TestColours(t *testing.T) {
	m := parallel(t)
	for _, text := range []string{
		"\x1b[32m" + secret + "\x1b[0m", "\x1b[01;31m\x1b[K" + secret + "\x1b[m\x1b[K", `\x1b[32m` + secret, `printf '\033[1;32m` + secret,
		"\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[K" + secret[4:], "\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33m" + secret[4:],
	} {
		for _, in := range []string{`{"a":` + quote("x "+text+"\x1b[0m y") + `}`, `{"a":` + quote(quote(text)) + `}`} {
			out, _ := m.Object([]byte(in))
			check(t, m, in, string(out))
			kit.Check(t, !strings.Contains(string(out), secret[8:]), "%s became %s", in, out)
		}
		out, _ := m.Text([]byte(text))
		kit.Check(t, !strings.Contains(string(out), secret[8:]), "%q became %q", text, out)
	}
	var tokens []string
	for _, text := range []string{secret, "\x1b[1mghp_\x1b[m\x1b[K" + secret[4:]} {
		out, ranges := m.Text([]byte(text))
		kit.Require(t, len(ranges) == 1, "%q became %q", text, out)
		tokens = append(tokens, strings.TrimRight(string(out[ranges[0].Start:ranges[0].End]), ".]"))
	}
	kit.Equal(t, fmt.Sprintf("one secret is %q", tokens), tokens[0], tokens[1])
	for _, in := range []string{`{"a":"[mghp_` + secret[4:] + `"}`, `{"a":"x1b[32m` + secret + `"}`} {
		out, _ := m.Object([]byte(in))
		kit.Check(t, string(out) == in, "%s became %s", in, out)
	}
}

// TestShapes masks secrets whose surroundings are unlike those in planted.
func TestShapes(t *testing.T) {
	m := parallel(t)
	long := "eyJ" + strings.Repeat("aZ3_", 120) + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0"
	for in, secret := range map[string]string{
		`{"a":` + quote("it is "+long+".c2lnbmF0dXJl") + `}`:                         "zdWIiOiIxMjM0",
		`{"a":` + quote(`{"Cookie":"session=abcdef123456"}`) + `}`:                   "abcdef123456",
		`{"a":` + quote(quote(`{"X-Shop-Token":"abcdef123456xyz"}`)) + `}`:           "abcdef123456",
		`{"mcpMeta":{"structuredContent":{"id":"` + secret + `"}}}`:                  secret,
		`{"type":"attachment","attachment":{"content":[{"id":"` + secret + `"}]}}`:   secret,
		`{"a":"password: abcdef123456"}`:                                             "abcdef123456",
		`{"a":"export db_password=abcdef123456"}`:                                    "abcdef123456",
		`{"a":"machine shop.example login kim\n  password abcdef123456"}`:            "abcdef123456",
		`{"a":"https://shop.example/v1?a=b&access_token=abcdef123456#x"}`:            "abcdef123456",
		`{"a":"<a href='/v1?a=b&amp;token=abcdef123456'>"}`:                          "abcdef123456",
		`{"a":"grant_type=password&username=kim&password=abcdef123456"}`:             "abcdef123456",
		`{"a":"tool --password abcdef123456 -v"}`:                                    "abcdef123456",
		`{"a":"tool --db-api-key=abcdef123456"}`:                                     "abcdef123456",
		`{"a":` + quote(`{"kty":"EC","x":"MKBC","d":"870MB6gfuTJ4HtUnUvYMy"}`) + `}`: "870MB6gfuTJ4HtUnUvYMy",
		`{"a":` + quote(`{"d":"870MB6gfuTJ4HtUnUvYMy","kty":"OKP"}`) + `}`:           "870MB6gfuTJ4HtUnUvYMy",
		// A token before it does not hide a key.
		`{"a":` + quote("-----BEGIN PRIVATE KEY----- [github:aaaaaaaa]\n"+each("", pemLines())) + `}`: "MIIEvQIBADANBgkqhkiG9w0B",
	} {
		out, _ := m.Object([]byte(in))
		check(t, m, in, string(out))
		kit.Check(t, !strings.Contains(string(out), secret), "%s became %s", in, out)
	}
	for _, in := range []string{
		`{"a":"tool --token-limit 32000a --max-token 4096 --password-file /run/secret1 --token=$TOKEN1234"}`,
		`{"a":"/login?token=$TOKEN&password=forgotten&page_token=abcdef123456"}`, `{"a":"login as kim; password 12345678"}`, `{"a":"{\"kty\":\"EC\",\"x\":\"MKBC\",\"kid\":\"870MB6gfuTJ4HtUnUvYMy\"}"}`,
		`{"a":"t.Errorf(\"TestAccessToken(access tokens): -want/+got:\\n%s\", diff)"}`,
		`{"a":"Header.Set(\"Authorization\", resauth.schema+\" \"+b)"}`, `{"a":"Header.Set(Authorization, shared.BearerPrefix+tk.Token)"}`,
		`{"a":"Authorization: AWS4-HMAC-SHA256 Credential=AKID/20210101/us-east-1/s3/aws4_request"}`,
		`{"a":"SecretAccessKey: \"SecretAccessKey-0\", SessionToken: aws.String(\"SessionToken-1\")"}`, `{"a":"v4creds:       v4creds,"}`,
		`{"a":"APIKey = \"smithy.api#httpApiKeyAuth\""}`,
		`{"a":["-----BEGIN PRIVATE KEY-----","and then","` + kept + `"]}`, `{"a":["` + kept + `","-----BEGIN PRIVATE KEY-----"]}`,
	} {
		out, _ := m.Object([]byte(in))
		kit.Check(t, string(out) == in, "%s became %s", in, out)
	}
}

func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// places are lines that hold a text, as transcripts do.
var places = map[string]func(text string) string{
	"prompt": func(s string) string {
		return `{"type":"user","uuid":"u-1","message":{"role":"user","content":` + quote("look:\n"+s) + `},"cwd":"/w"}`
	},
	"answer": func(s string) string {
		return `{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":` + quote("한글 é\t"+s+"\nend") + `}]}}`
	},
	"tool input": func(s string) string {
		return `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":` +
			quote("cat <<E\n"+s+"\nE") + `}}]}}`
	},
	"tool result": func(s string) string {
		return `{"type":"user","message":{"content":[{"tool_use_id":"toolu_1","type":"tool_result","content":` + quote(s) +
			`}]},"toolUseResult":{"stdout":` + quote(s) + `,"stderr":""}}`
	},
	"nested once":   func(s string) string { return `{"a":` + quote(quote(map[string]string{"x": "y\n" + s})) + `}` },
	"nested twice":  func(s string) string { return `{"a":` + quote("out: "+quote(quote([]string{s}))) + `}` },
	"nested thrice": func(s string) string { return `{"a":[` + quote(quote(quote(quote([]string{"\t" + s})))) + `]}` },
	"unicode escapes": func(s string) string {
		var b strings.Builder
		for _, c := range s {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
		return `{"a":"` + b.String() + `"}`
	},
	"escaped slashes": func(s string) string { return `{"a":` + strings.ReplaceAll(quote(s), "/", `\/`) + `}` },
	"file snapshot": func(s string) string {
		return `{"type":"file-history-snapshot","snapshot":{"trackedFileBackups":{"x":{"content":` + quote("1\n2\n"+s) + `}}}}`
	},
}

// TestPlanted masks secrets of every kind in every position.
func TestPlanted(t *testing.T) {
	m := parallel(t)
	r := rand.New(rand.NewPCG(1, 2))
	total, missed := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(planted.Kinds())) {
		for _, place := range slices.Sorted(maps.Keys(places)) {
			text, secret := planted.Plant(r, planted.Kinds()[kind])
			in := places[place](text)
			total++
			out, ranges := m.Object([]byte(in))
			check(t, m, in, string(out))
			if leaks(string(out), secret) {
				missed++
				t.Logf("%s in %s: %s\n%s %v", kind, place, secret, out, ranges)
			}
		}
	}
	t.Logf("%d secrets of %d kinds, %d missed", total, len(planted.Kinds()), missed)
	kit.Check(t, missed*50 <= total, "%d of %d secrets missed, want 2 %% at most", missed, total)
}

// TestPlantedTexts masks secrets in texts that are no JSON.
func TestPlantedTexts(t *testing.T) {
	m := parallel(t)
	r := rand.New(rand.NewPCG(3, 4))
	wraps := map[string]func(string) string{
		"alone":    func(s string) string { return s },
		"document": func(s string) string { return "# Title\n\n" + s + "\n\nend\xff" },
		"cut line": func(s string) string { return `{"type":"user","message":{"content":` + quote("x\n"+s) },
	}
	for _, kind := range slices.Sorted(maps.Keys(planted.Kinds())) { // in one order: the secrets are the same each time
		for _, place := range slices.Sorted(maps.Keys(wraps)) {
			text, secret := planted.Plant(r, planted.Kinds()[kind])
			out, _ := m.Text([]byte(wraps[place](text)))
			kit.Check(t, !leaks(string(out), secret), "%s in %s is not masked: %q", kind, place, out)
			again, _ := m.Text(out)
			kit.Check(t, string(again) == string(out), "%s in %s is masked again: %q, then %q", kind, place, out, again)
		}
	}
}

// leaks reports whether a good part of a secret can be read.
func leaks(out, secret string) bool {
	text := string(plain([]byte(out)))
	return strings.Contains(text, secret) || len(secret) > 24 && strings.Contains(text, secret[4:len(secret)-4]) ||
		strings.Contains(text, secret[:min(len(secret), 12)]) && strings.Contains(text, secret[len(secret)-min(len(secret), 12):])
}

func masker(t testing.TB, further ...Rule) *Masker {
	t.Helper()
	return kit.Try(New(Key{1, 2, 3}, further...)).Must(t)
}

// parallel is masker for a test that runs in parallel with others.
func parallel(t *testing.T, further ...Rule) *Masker {
	t.Parallel()
	return masker(t, further...)
}

// check holds a masked line to what must not change.
func check(t testing.TB, m *Masker, in, out string) {
	t.Helper()
	kit.Require(t, len(in) == len(out), "%d bytes became %d: %q", len(in), len(out), out)
	kit.Require(t, !json.Valid([]byte(in)) || json.Valid([]byte(out)), "no longer valid:\n%s\n%s", in, out)
	again, ranges := m.Object([]byte(out))
	kit.Require(t, string(again) == out && len(ranges) == 0, "masked again:\n%s\n%s\n%s", in, out, again)
}
