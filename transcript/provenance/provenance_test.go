package provenance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

var noon = time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)

// script is a transcript that is being written.
type script struct {
	lines []string
	at    time.Time
}

func (s *script) record(typ string, content any, more string) {
	message, err := json.Marshal(map[string]any{"role": typ, "content": content})
	if err != nil {
		panic(err)
	}
	s.at = s.at.Add(time.Second)
	s.lines = append(s.lines, fmt.Sprintf(`{"type":%q,"uuid":"u%d","cwd":"/home/kim/shop","sessionId":"s","timestamp":%q,"message":%s%s}`,
		typ, len(s.lines), s.at.Format(time.RFC3339Nano), message, more))
}

func (s *script) prompt(text string) { s.record("user", text, "") }

func (s *script) call(id, tool string, input map[string]any) {
	s.record("assistant", []any{map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}}, "")
}

func (s *script) result(id string, failed bool, text, more string) {
	s.record("user", []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}}, more)
}

func (s *script) edits(t *testing.T) (out []Edit) {
	t.Helper()
	fold, b, whole := &session.Fold{}, &Builder{}, &Builder{}
	var atOnce []Edit
	for i, line := range s.lines {
		r := transcript.Parse([]byte(line))
		events := fold.Add(int64(i), r)
		out = append(out, b.Add(int64(i), &r, events)...)
		atOnce = append(atOnce, whole.Add(int64(i), &r, events)...)
		state, _ := b.MarshalBinary() // a step of deriving may end after each record
		b = &Builder{}
		kit.Must(t, b.UnmarshalBinary(state))
	}
	kit.Same(t, "without steps", cmp.Diff(out, atOnce))
	return out
}

func sums(lines ...string) (out []Sum) {
	for _, l := range lines {
		if s, _, ok := SumOf(l); ok {
			out = append(out, s)
		}
	}
	return out
}

func TestEdits(t *testing.T) {
	s := &script{at: noon}
	s.prompt("write the cart")
	s.call("1", "Write", map[string]any{"file_path": "/home/kim/shop/cart.go", "content": "package shop\n\nfunc total() int { return 0 }\n"})
	s.result("1", false, "ok", `,"toolUseResult":{"type":"create","filePath":"/home/kim/shop/cart.go","structuredPatch":[]}`)
	s.prompt("count the price")
	s.call("2", "Edit", map[string]any{"file_path": "/home/kim/shop/cart.go", "old_string": "0", "new_string": "sum(c)"})
	s.result("2", false, "ok", `,"toolUseResult":{"structuredPatch":[{"lines":[" package shop","-func total() int { return 0 }","+func total() int { return sum(c) }"]}]}`)
	s.call("3", "Edit", map[string]any{"file_path": "/home/kim/shop/cart.go", "old_string": "x", "new_string": "never there"})
	s.result("3", true, "String to replace not found in file.", "")
	s.call("4", "MultiEdit", map[string]any{"file_path": `C:\shop\cart.go`, "edits": []any{
		map[string]any{"old_string": "a := 1\nkeep(a)", "new_string": "a := 2\n\tkeep(a)"},
		map[string]any{"old_string": "", "new_string": "b := 3"}}})
	s.result("4", false, "ok", "")
	s.call("5", "NotebookEdit", map[string]any{"notebook_path": "/home/kim/shop/n.ipynb", "new_source": "print(1)"})
	s.result("5", false, "ok", "")
	s.call("6", "Bash", map[string]any{"command": "cd web && cat > page.html <<'EOF'\n<p>hello</p>\nEOF\nmake"})
	s.result("6", true, "Exit code 2\nmake: no rule", "")
	s.call("7", "Bash", map[string]any{"command": "cat > no.txt <<EOF\nrefused\nEOF"})
	s.result("7", true, "The user doesn't want to proceed with this tool use.", "")
	s.call("8", "Write", map[string]any{"file_path": "/home/kim/shop/open.go", "content": "without a result"})
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	want := []Edit{
		{Line: 1, Prompt: 0, At: at(3), Path: "/home/kim/shop/cart.go", Sums: sums("package shop", "func total() int { return 0 }")},
		{Line: 4, Prompt: 3, At: at(6), Path: "/home/kim/shop/cart.go", Sums: sums("func total() int { return sum(c) }")},
		{Line: 8, Prompt: 3, At: at(10), Path: "C:/shop/cart.go", Sums: sums("a := 2", "b := 3")},
		{Line: 10, Prompt: 3, At: at(12), Path: "/home/kim/shop/n.ipynb", Sums: sums("print(1)")},
		{Line: 12, Prompt: 3, At: at(13), Path: "/home/kim/shop/web/page.html", Sums: sums("<p>hello</p>")},
	}
	kit.Same(t, "differs", cmp.Diff(want, s.edits(t)))
}

// TestEditsOfAnAgentInProgress reads edits of an agent from the records that repeat them.
func TestEditsOfAnAgentInProgress(t *testing.T) {
	s := &script{at: noon}
	s.prompt("let an agent write it")
	for _, message := range []string{
		`{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Edit","input":{"file_path":"/home/kim/shop/a.go","old_string":"","new_string":"func agent() {}"}}]}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"ok"}]}}`,
	} {
		s.lines = append(s.lines, `{"type":"progress","cwd":"/home/kim/shop","timestamp":"2026-03-12T12:00:09Z","data":{"type":"agent_progress","message":`+message+`}}`)
	}
	want := []Edit{{Line: 1, At: noon.Add(9 * time.Second), Path: "/home/kim/shop/a.go", Sums: sums("func agent() {}")}}
	kit.Same(t, "differs", cmp.Diff(want, s.edits(t)))
}

func TestHeredocs(t *testing.T) {
	for _, x := range []struct{ command, want string }{
		{"cat > a.txt <<'EOF'\none\ntwo\nEOF", "/w/a.txt: one|two"},
		{"cat <<EOF >> 'b c.txt'\none\nEOF\necho done", "/w/b c.txt: one"},
		{"cd /srv/x; cat <<-END > d\n\tone\n\tEND", "/srv/x/d: \tone"},
		{"tee -a log.txt <<EOF\nx1\nEOF", "/w/log.txt: x1"},
		{"(cd sub && cat > e <<\"E\"\ny\nE\n)\ncat > f <<E\nz\nE", "/w/sub/e: y\n/w/sub/f: z"},
		{"git commit -m \"$(cat <<'EOF'\nmessage\nEOF\n)\"", ""},
		{"python3 - <<'EOF'\nopen('x','w')\nEOF", ""},
		{"cat > $DIR/a <<E\nx\nE", ""},
		{"cat > a <<E\nwithout an end", ""},
		{"echo 1 << 2", ""},
	} {
		s := &script{at: noon}
		s.call("1", "Bash", map[string]any{"command": x.command})
		s.result("1", false, "", "")
		s.lines[0] = strings.Replace(s.lines[0], "/home/kim/shop", "/w", 1)
		var got []string
		for _, e := range s.edits(t) {
			got = append(got, e.Path)
			for _, text := range strings.Split(x.want, "\n") {
				path, lines, _ := strings.Cut(text, ": ")
				kit.Check(t, path != e.Path || cmp.Equal(e.Sums, sums(strings.Split(lines, "|")...)), "%q: other lines in %s",
					x.command, path)
			}
		}
		var want []string
		for _, text := range strings.Split(x.want, "\n") {
			if path, _, ok := strings.Cut(text, ": "); ok {
				want = append(want, path)
			}
		}
		diff := cmp.Diff(want, got)
		kit.Check(t, diff == "", "%q: %s", x.command, diff)
	}
}

// TestSumOf compares what formatters change as equal, and says when it was changed.
func TestSumOf(t *testing.T) {
	base, plain, ok := SumOf("\treturn compare(a, b)")
	kit.Require(t, !plain && ok, "a telling line")
	for line, same := range map[string]bool{"  return compare(a, b)": true, "return compare( a,b )\r": true, "  return compare(a, b);": true, "return compare(a, c)": false} {
		s, _, _ := SumOf(line)
		kit.Equal(t, line+": same is", (s.Key() == base.Key()), same)
		kit.Check(t, s != base || line == "  return compare(a, b)", "%q is the same in every character", line)
	}
	_, plain, ok = SumOf("\t}")
	kit.Check(t, plain && ok, "a brace tells something")
	_, _, ok = SumOf(" \t\r")
	kit.Check(t, !ok, "a blank line is a line")
	secret := Secret{1}
	other := sums("return compare(a, c)")[0]
	ask := secret.Ask([]Sum{base})
	got, ok := ask.Open(secret.Seal(base))
	kit.Check(t, ok && got == base, "a stored sum is not found")
	_, ok = ask.Open(secret.Seal(other))
	kit.Check(t, !ok, "a sum that is not asked for is shown")
}

func added(lines ...string) (out []Added) {
	for i, l := range lines {
		if s, plain, ok := SumOf(l); ok {
			out = append(out, Added{Number: i + 1, Sum: s, Plain: plain})
		}
	}
	return out
}

func edit(session, minute int, path string, lines ...string) Candidate {
	return Candidate{Session: session, Edit: Edit{Line: int64(minute), Prompt: 0, At: noon.Add(time.Duration(minute) * time.Minute),
		Path: path, Sums: sums(lines...)}}
}

// manyLines are n lines that each say something.
func manyLines(who string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("line %d was written %s", i, who))
	}
	return out
}

func TestDecide(t *testing.T) {
	const a, b = "func total(c Cart) int {", "return sum(c.Prices)"
	long := noon.Add(time.Hour)
	old := Added{Number: 9, Since: noon.Add(30 * time.Minute)}
	old.Sum, _, _ = SumOf(a)
	here := edit(1, 1, "/k/shop/LICENSE.md", a, b)
	here.Same = true
	for name, x := range map[string]struct {
		file File
		bot  bool
		list []Candidate
		want string
	}{
		"both lines and the brace": {file: File{Paths: []string{"shop/cart.go"}, Lines: added(a, b, "}")},
			list: []Candidate{edit(1, 1, "/home/kim/shop/cart.go", a, b, "}")}, want: "1:3 map[]"},
		"a brace behind another one's line": {file: File{Paths: []string{"cart.go"}, Lines: added(a, b, "}", "func taxes(c Cart) int {", "}")},
			list: []Candidate{edit(1, 1, "/k/cart.go", a, b, "}")}, want: "1:3 map[by_hand:2]"},
		"a line that two sessions wrote": {file: File{Paths: []string{"cart.go"}, Lines: added(a, b, "func first(c Cart) int {", "func taxes(c Cart) int {", b)},
			list: []Candidate{edit(1, 1, "/k/cart.go", a, b, "func first(c Cart) int {"), edit(2, 2, "/k/cart.go", "func taxes(c Cart) int {", b)}, want: "1:3 2:2 map[]"},
		"a brace of an earlier edit": {file: File{Paths: []string{"cart.go"}, Lines: added(a, "}")},
			list: []Candidate{edit(1, 1, "/k/cart.go", a, "}"), edit(1, 2, "/k/cart.go", a)}, want: "1:2 map[]"},
		"a brace alone": {file: File{Paths: []string{"cart.go"}, Lines: added("}")},
			list: []Candidate{edit(1, 1, "/k/cart.go", "}")}, want: "map[by_hand:1]"},
		"the last session": {file: File{Paths: []string{"cart.go"}, Lines: added(a)},
			list: []Candidate{edit(1, 1, "/k/cart.go", a), edit(2, 2, "/l/cart.go", a)}, want: "2:1 map[]"},
		"after the commit": {file: File{Paths: []string{"cart.go"}, Lines: added(a)},
			list: []Candidate{edit(1, 1, "/k/cart.go", a), edit(2, 99, "/l/cart.go", a)}, want: "1:1 map[]"},
		"another file of this name": {file: File{Paths: []string{"shop/cart.go"}, Lines: added(a)},
			list: []Candidate{edit(1, 1, "/k/other/cart.go", a)}, want: "map[no_transcript:1]"},
		"before it was renamed": {file: File{Paths: []string{"till.go", "cart.go"}, Lines: added(a)},
			list: []Candidate{edit(1, 1, "/k/cart.go", a)}, want: "1:1 map[]"},
		"brought back": {file: File{Paths: []string{"cart.go"}, Lines: []Added{old}},
			list: []Candidate{edit(1, 1, "/k/cart.go", a)}, want: "map[restored:1]"},
		"written again": {file: File{Paths: []string{"cart.go"}, Lines: []Added{old}},
			list: []Candidate{edit(1, 40, "/k/cart.go", a)}, want: "1:1 map[]"},
		"too little": {file: File{Paths: []string{"cart.go"}, Lines: added(a, b, "this line is by hand", "and so is this line", "as is this one here", "and this is the sixth")},
			list: []Candidate{edit(1, 1, "/k/cart.go", a)}, want: "map[by_hand:5 too_little:1]"},
		"much of a large commit": {file: File{Paths: []string{"cart.go"}, Lines: added(append(manyLines("by Claude", 40), manyLines("by hand", 500)...)...)},
			list: []Candidate{edit(1, 1, "/k/cart.go", manyLines("by Claude", 40)...)}, want: "1:40 map[by_hand:500]"},
		"a license in another repository": {file: File{Paths: []string{"LICENSE.md"}, Lines: added(a, b)},
			list: []Candidate{edit(1, 1, "/k/other/LICENSE.md", a, b)}, want: "map[no_transcript:2]"},
		"a license in this repository": {file: File{Paths: []string{"LICENSE.md"}, Lines: added(a, b)},
			list: []Candidate{here}, want: "1:2 map[]"},
		"of a bot":    {bot: true, file: File{Paths: []string{"cart.go"}, Lines: added(a)}, list: []Candidate{edit(1, 1, "/k/cart.go", a)}, want: "map[bot:1]"},
		"generated":   {file: File{Paths: []string{"go.sum"}, Generated: true, Lines: added(a)}, want: "map[generated:1]"},
		"with secret": {file: File{Paths: []string{"cart.go"}, Masked: 1, Lines: added(a)}, list: []Candidate{edit(1, 1, "/k/cart.go", a)}, want: "1:1 map[masked:1]"},
	} {
		lists := [][]Candidate{x.list}
		d := Decide(Commit{At: long, Bot: x.bot, Files: []File{x.file}}, lists)
		var got []string
		for _, s := range d.Shares(lists) {
			got = append(got, fmt.Sprintf("%d:%d", s.Session, s.Lines))
		}
		kit.Equal(t, name, strings.Join(append(got, fmt.Sprint(d.NotProven)), " "), x.want)
	}
}

// TestDecideOriginal names the session that was first, not one that repeats it.
func TestDecideOriginal(t *testing.T) {
	const a = "func total(c Cart) int {"
	copied := edit(1, 1, "/k/cart.go", a)
	copied.Copied = true
	lists := [][]Candidate{{edit(2, 1, "/k/cart.go", a), copied}}
	d := Decide(Commit{At: noon.Add(time.Hour), Files: []File{{Paths: []string{"cart.go"}, Lines: added(a)}}}, lists)
	s := d.Shares(lists)
	kit.Check(t, len(s) == 1 && s[0].Session == 2, "named: %+v", s)
}
