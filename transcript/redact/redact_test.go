package redact

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/planted"
)

const secret = "ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234"

// TestUntouched holds identities, names and binary data to what they were.
func TestUntouched(t *testing.T) {
	m := parallel(t)
	image := strings.Repeat("AKIA", 8) + "/AKIAQ3EGSDFKJ4KKAX2Z/" + strings.Repeat("abcd", 80)
	for name, line := range map[string]string{
		"ids":          `{"uuid":"` + secret + `","parentUuid":"` + secret + `","sessionId":"` + secret + `","requestId":"` + secret + `","timestamp":"` + secret + `"}`,
		"message id":   `{"message":{"id":"` + secret + `"}}`,
		"tool use":     `{"message":{"content":[{"type":"tool_use","id":"` + secret + `"},{"tool_use_id":"` + secret + `"}]}}`,
		"signature":    `{"message":{"content":[{"type":"thinking","thinking":"x","signature":"` + secret + `"}]}}`,
		"image":        `{"message":{"content":[{"type":"image","source":{"type":"base64","data":"` + image + `"}}]}}`,
		"member name":  `{"toolUseResult":{"` + secret + `":1}}`,
		"no secret":    `{"usage":{"input_tokens":12,"output_tokens":3},"text":"the password is secret, the token: none"}`,
		"example":      `{"a":"AKIAIOSFODNN7EXAMPLE and ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`,
		"template":     `{"a":"PASSWORD=${DB_PASSWORD} TOKEN=$(cat f) Authorization: Bearer ${TOKEN1234567890123}"}`,
		"no password":  `{"a":"https://example.com:8080/a@b and git@github.com:a/b, MAX_OUTPUT_TOKENS=32000"}`,
		"code":         `{"a":"password := os.Getenv(\"PASSWORD1\")\ntoken = tokens[1].value2\n"}`,
		"next setting": `{"a":"secrets:\n  my_secret_1:\n    required: true"}`,
		"colours":      `{"a":"PASS='\\x1b[32mPASS' TOKEN='\\033[1mtok3n'"}`,
		"filled in":    `{"a":"AccessKeyId=__AccessKeyId1__&Action=Get"}`,
		"starred":      `{"a":"Authorization: AWS4-HMAC-SHA256 Credential=AKIA6****/20260127/us-east-1/s3/aws4_request"}`,
		"a build":      `{"a":"msbuild a.sln /p:Configuration=Release2 /p:OutDir=lib5"}`,
		"a badge":      `{"a":"https://codecov.io/gh/a/b/branch/main/graph/badge.svg?token=1R1T61UNBQ"}`,
		"a cookie":     `{"a":"curl --cookie \"name=Joseph\" localhost"}`,
		"base64":       `{"a":"HwQx/EAAAAAAAPHwBIgf4AAEAAD4MYAQAASIsU8kiJxkjB6A1IJf8fAABIi7zCAAAgAIQ"}`,
		"hexadecimal":  `{"a":"pk = EAAD` + strings.Repeat("1B28CFBD736B988B", 9) + `"}`,
		"inside words": `{"a":"Xghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234"}`,
	} {
		out, ranges := m.Object([]byte(line))
		kit.Check(t, string(out) == line && ranges == nil, "%s: %s became %s", name, line, out)
	}
}

// TestFreeText masks what a tool is given or returns, whatever its members are called.
func TestFreeText(t *testing.T) {
	m := parallel(t)
	for _, line := range []string{
		`{"message":{"content":[{"type":"tool_use","id":"t","input":{"id":"` + secret + `"}}]}}`,
		`{"toolUseResult":{"signature":"` + secret + `"}}`,
		`{"message":{"content":[{"type":"image","source":{"type":"base64","data":"` + secret + `"}}]}}`,
		`{"toolUseResult":{"password":"abcdef123456"}}`,
		`{"toolUseResult":{"headers":{"Cookie":"session=abcdef123456"}}}`,
	} {
		out, ranges := m.Object([]byte(line))
		kit.Check(t, len(ranges) == 1, "%s: %v", line, ranges)
		check(t, m, line, string(out))
	}
}

// TestTokens shows what tokens look like, and that equal secrets are equal tokens at any depth.
func TestTokens(t *testing.T) {
	m := parallel(t)
	other := kit.Try(New(Key{9})).Must(t)
	of := func(m *Masker, line string) (string, Range) {
		out, ranges := m.Object([]byte(line))
		kit.Require(t, len(ranges) == 1, "%s: %v", line, ranges)
		return string(out[ranges[0].Start:ranges[0].End]), ranges[0]
	}
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0B\n", 9) + "-----END PRIVATE KEY-----"
	deep, _ := of(m, `{"a":`+quote(quote(quote(key)))+`}`)
	flat, r := of(m, `{"b":`+quote("so: "+key)+`}`)
	kit.Equal(t, fmt.Sprintf("one key is %s and %s", deep, flat), strings.TrimRight(deep, ".]"),
		strings.TrimRight(flat, ".]"))
	kit.Check(t, r.Proven && r.Rule == "private-key", "the key's range is %+v", r)
	token, _ := of(m, `{"a":"`+secret+`"}`)
	if !m.Proves([]byte(token), []byte(secret)) || m.Proves([]byte(token), []byte(strings.Replace(secret, "a", "b", 1))) {
		t.Errorf("what %s stands for is not proven", token)
	}
	if foreign, _ := of(other, `{"a":"`+secret+`"}`); foreign == token || other.Proves([]byte(token), []byte(secret)) {
		t.Errorf("another key makes the same token: %s", token)
	}
	short, r := of(m, `{"a":"DB_PASSWORD=ab12cd"}`)
	kit.Check(t, short == "******" && !r.Proven, "a short secret is %s, %+v", short, r)
	kit.Gives(t, "the key reads back as", (Key{7}))(ParseKey(Key{7}.Text() + "\n"))
	_, err := ParseKey("abc")
	kit.Check(t, err != nil, "a text that is no key is accepted")
}

// TestFurtherRules tries what rule files can say.
func TestFurtherRules(t *testing.T) {
	t.Parallel()
	rule := Rule{
		Name: "ours", Pattern: `ours_([a-z0-9]{8,})(!?)`, Literals: []string{"OURS_"}, Fold: true, Group: 1, Entropy: 2,
		Allow: []Allow{
			{Patterns: []string{`test`}},
			{Patterns: []string{`!$`}, Target: "match"},
			{Patterns: []string{`nolint`}, Target: "line"},
			{StopWords: []string{"sample"}},
			{Patterns: []string{`ab`}, StopWords: []string{"cd"}, All: true},
		},
	}
	paths := Rule{Name: "paths", Pattern: `zzz[0-9]{9}`, Path: `\.conf$`, Allow: []Allow{{Paths: []string{`^ok/`}}}}
	m := masker(t, rule, paths)
	for text, masked := range map[string]bool{
		"ours_k3j5h7g9": true, "ours_aaaaaaaa": false, "ours_test3j5h7g9": false, "ours_k3j5h7g9!": false,
		"nolint ours_k3j5h7g9": false, "nolint\nours_k3j5h7g9": true, "ours_sample35": false, "ours_abk3j5h7": true,
		"ours_abcdk3j5": false, "zzz123456789": false,
	} {
		out, ranges := m.Text([]byte(text))
		kit.Check(t, (len(ranges) > 0) == masked, "%q became %q", text, out)
	}
	for path, masked := range map[string]bool{"a.conf": true, "ok/a.conf": false, "a.txt": false} {
		_, ranges := m.File(path, []byte("zzz123456789"))
		kit.Check(t, (len(ranges) > 0) == masked, "%s: %v", path, ranges)
	}
	for _, bad := range []Rule{
		{Name: "Bad", Pattern: "a"},
		{Name: "bad", Pattern: "("},
		{Name: "bad", Pattern: "a", Group: 1},
		{Name: "bad", Pattern: "a", Literals: []string{"a"}},
		{Name: "bad", Pattern: "a", Path: "("},
		{Name: "bad", Pattern: "a", Allow: []Allow{{Patterns: []string{"("}}}},
	} {
		_, err := New(Key{}, bad)
		kit.Check(t, err != nil, "the rule %+v is accepted", bad)
	}
}

// TestBuiltin compiles every rule of the table; each has a source.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	for _, r := range masker(t).rules {
		r.expression()
		kit.Check(t, strings.HasPrefix(r.Source, "https://"), "rule %s has no source", r.Name)
	}
	n := len(builtin())
	kit.Check(t, n >= 35, "%d rules, want 35", n)
}

// TestLikely: no rule passes over a position where its expression finds a secret.
func TestLikely(t *testing.T) {
	m := masker(t)
	parts := []string{
		"PASS", "_PWD", "SECRET", "TOKEN", "API_KEY", "CREDENTIALS", "password", "cookie", "authorization: basic ", "x-api-key", "_PROD", "_2",
		" ", "=", ":", "\n", `"`, "'", "a1b2c3d4e5", "hunter2hunter2", "://", "@h", "--- ", ",", "bearer ", "--token", "name: ",
		"value", ">", "(", ")", "$", "Test", "auth", "conn ", "scott/", "username kim secret ", "Ab1.%E3_x!",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 12).Draw(t, "parts"), ""))
		for _, r := range m.rules {
			found := r.expression().FindSubmatchIndex(text)
			if found != nil && r.quick != nil && !r.quick().mayMatch(text) {
				t.Fatalf("%s finds %q, but its automaton does not", r.Name, text[found[0]:found[1]])
			}
			if found == nil || r.near == anything {
				continue
			}
			from, to := r.secret(found)
			if secret := text[from:to]; !r.allowed(text, found, secret, "") || !bytes.ContainsAny(secret, "0123456789") {
				continue // what has no digits may be part of words
			}
			likely := false
			for at := found[0]; at < found[1]; at++ {
				likely = likely || slices.ContainsFunc(r.Literals, func(literal string) bool {
					n := len(literal)
					return at+n <= len(text) && strings.EqualFold(literal, string(text[at:at+n])) && r.likely(text, at, &ahead{})
				})
			}
			if !likely {
				t.Fatalf("%s finds %q, but passes over it", r.Name, text[found[0]:found[1]])
			}
		}
	})
}

// TestProperties masks lines made from pieces that are hard to distinguish.
func TestProperties(t *testing.T) {
	m := parallel(t)
	var pieces []string
	r := rand.New(rand.NewPCG(5, 6))
	for _, form := range planted.Kinds() {
		text, secret := planted.Plant(r, form)
		pieces = append(pieces, text, secret, secret[:len(secret)/2])
	}
	pieces = append(pieces, `\`, `\n`, `\\`, `"`, `\"`, "/", "://", "@", ":", "=", " ", "\n", "[github:aaaaaaaa]", "*", "한", "\u2028", "PASSWORD=",
		"cookie: ", "Bearer ", "-----BEGIN PRIVATE KEY-----", "\\u0041", "\\ud83d")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 8).Draw(t, "pieces"), "")
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			text = quote(text)
		}
		in := `{"a":[{"content":` + quote(text) + `}],"b":` + quote(quote(map[string]string{"password": text})) + `}`
		out, ranges := m.Object([]byte(in))
		if len(out) != len(in) || !json.Valid(out) {
			t.Fatalf("%s\nbecame\n%s", in, out)
		}
		if again, more := m.Object(out); !bytes.Equal(again, out) || more != nil {
			t.Fatalf("masked again:\n%s\n%s\n%s", in, out, again)
		}
		end := 0
		for _, r := range ranges {
			if r.Start < end || r.End <= r.Start {
				t.Fatalf("ranges overlap: %v", ranges)
			}
			end = r.End
		}
		var deepIn, deepOut any
		_ = json.Unmarshal([]byte(nested(t, in)), &deepIn)
		if deepIn != nil && json.Unmarshal([]byte(nested(t, string(out))), &deepOut) != nil {
			t.Fatalf("the nested text is no longer valid:\n%s\n%s", in, out)
		}
	})
}

// nested is the JSON in member b.
func nested(t *rapid.T, line string) string {
	var v struct{ B string }
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatal(err)
	}
	return v.B
}

// FuzzObject feeds lines of any kind.
func FuzzObject(f *testing.F) {
	m := masker(f)
	f.Add([]byte(`{"a":"\nAKIAQ3EGSDFKJ4KKAX2Z","b":["{\"password\":\"abc123def456\"}"]}`))
	f.Add([]byte(`{"a":"\ud83d\u0067hp_abcdEFGH1234abcdEFGH1234abcdEFGH1234\\"}`))
	f.Add([]byte(`{"a":"\u001b[31mghp_\u001b[m\u001b[Kab\\n","b":["-----BEGIN PRIVATE KEY-----","+MIIEvQIBADANBgkqhkiG9w0BAQEF"]}`))
	f.Add([]byte(`{"a":"TOKEN=abc123def\\","b":"https:\/\/u:p4ssw0rd@h"`))
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		out, _ := m.Object(line)
		kit.Require(t, bytes.Equal(before, line), "the input has changed")
		kit.Require(t, len(out) == len(line) && (!json.Valid(line) || json.Valid(out)), "%q became %q", line, out)
		again, _ := m.Object(out)
		kit.Require(t, !json.Valid(line) || bytes.Equal(again, out), "masked again: %q, %q, %q", line, out, again)
		out, _ = m.Text(line)
		kit.Require(t, len(out) == len(line), "%q became %q", line, out)
	})
}

// FuzzUnescape holds offsets to the text that they come from.
func FuzzUnescape(f *testing.F) {
	f.Add([]byte(`a\n\u00e9\ud83d\ude00\ud83d\q\`))
	f.Add([]byte("a\x1b[31m\x1b[Kb\\n\x1b[0"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var x text
		x.begin("", 3)
		x.unescape(src, 3)
		last := 0
		for at := range len(x.b) + 1 {
			start, end := x.down(at, true), x.down(at, false)
			kit.Require(t, end <= start && start >= last && start <= len(src)+3 && end >= 3,
				"offset %d of %q is from %d to %d", at, src, start, end)
			last = start
			if start == end && x.up(start, true) != at {
				t.Fatalf("offset %d of %q comes back as %d", at, src, x.up(start, true))
			}
		}
	})
}

// corpus is the folders with real conversations, if there are any.
func corpus() []string {
	if dir := kit.Setting("corpus", ""); dir != "" {
		return []string{dir}
	}
	return []string{filepath.Join("..", "..", "..", "shared", "transcripts")}
}

func corpusLines(t testing.TB) (lines [][]byte, size int64) {
	t.Helper()
	for _, dir := range corpus() {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			size += int64(len(b))
			scanner := bufio.NewScanner(bytes.NewReader(b))
			scanner.Buffer(nil, 1<<30)
			for scanner.Scan() {
				lines = append(lines, bytes.Clone(scanner.Bytes()))
			}
			return scanner.Err()
		})
		kit.Require(t, err == nil || errors.Is(err, fs.ErrNotExist), "%v", err)
	}
	if len(lines) == 0 {
		t.Skip("no conversations: CCSHIP_TEST=corpus=FOLDER names some")
	}
	return lines, size
}

// TestCorpus counts what is masked in real conversations.
func TestCorpus(t *testing.T) {
	t.Parallel()
	lines, size := corpusLines(t)
	m := masker(t)
	byRule := map[string]int{}
	total := 0
	for _, line := range lines {
		out, ranges := m.Object(line)
		kit.Check(t, len(out) == len(line) && (!json.Valid(line) || json.Valid(out)),
			"a line is not the same length, or no longer valid")
		for _, r := range ranges {
			byRule[r.Rule]++
			total++
		}
	}
	t.Logf("%d lines, %d bytes: %d masked, %.2f a MiB, by rule %v", len(lines), size, total,
		float64(total)/float64(size)*(1<<20), byRule)
	kit.Check(t, kit.Setting("corpus", "") != "" || total <= 1, "%d false positives, want one at most: %v", total,
		byRule)
}

func BenchmarkObject(b *testing.B) {
	lines, size := corpusLines(b)
	m := masker(b)
	b.SetBytes(size)
	for b.Loop() {
		for _, line := range lines {
			m.Object(line)
		}
	}
}

// TestAdjacent: secrets that follow each other without a gap are all masked, at once.
func TestAdjacent(t *testing.T) {
	m := kit.Try(New(NewKey())).Must(t)
	_, secret := planted.Plant(rand.New(rand.NewPCG(1, 2)), planted.Kinds()["plaid"])
	out, ranges := m.Text(bytes.Repeat([]byte(secret), 40))
	kit.Equal(t, fmt.Sprintf("of 40 secrets are masked: %s", out), len(ranges), 40)
	_, more := m.Text(out)
	kit.Check(t, len(more) == 0, "masked again: %v", more)
}
