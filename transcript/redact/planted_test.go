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
