package corpus

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"time"
)

// call is a tool's use: what it is given, what it answers, and what the program keeps of it next to that.
type call struct{ name, input, result, kept string }

// step is one call of a tool, with what is thought and said before it.
func (w *writer) step() {
	message := token(w.rng, "msg_01", 22)
	w.think(message, "tool_use")
	if w.rng.IntN(5) < 2 {
		w.say(message, newObject().text("type", "text").text("text", w.words(around(w.rng, 96, 1, 2000))).end(), "tool_use")
	}
	c, id := w.call(), token(w.rng, "toolu_01", 22)
	w.say(message, newObject().text("type", "tool_use").text("id", id).text("name", c.name).raw("input", c.input).
		raw("caller", `{"type":"direct"}`).end(), "tool_use")
	asked := w.parent
	result := newObject().text("tool_use_id", id).text("type", "tool_result").raw("content", c.result).end()
	w.add(w.seal(w.chain().text("promptId", w.prompt).text("type", "user").
		raw("message", newObject().text("role", "user").raw("content", "["+result+"]").end()).
		raw("toolUseResult", c.kept).text("sourceToolAssistantUUID", asked)), time.Duration(w.rng.IntN(20))*time.Second)
	w.ctx += min(len(c.result), 60_000)/4 + 200
}

// call draws a tool as often as it is used.
func (w *writer) call() call {
	f := w.file()
	switch n := w.rng.IntN(1000); {
	case n < 2:
		return w.image()
	case n < 260:
		return w.read(f)
	case n < 370:
		return w.edit(f)
	}
	return w.bash(f)
}

// file is what a step is about: mostly what the one before was about, else another one of the few that the session
// works on. Those are longer than most.
func (w *writer) file() file {
	if len(w.at.text) == 0 || w.rng.IntN(2) == 0 {
		w.at = w.files[w.rng.IntN(len(w.files))]
		for range 2 {
			other := w.files[w.rng.IntN(len(w.files))]
			if len(other.text) > len(w.at.text) {
				w.at = other
			}
		}
	}
	return w.at
}

func quoted(text string) string { return string(quote(nil, text)) }

// passage is about n bytes of a file, from the beginning of a line.
func passage(rng *rand.Rand, f file, n int) string {
	at := rng.IntN(max(1, len(f.text)-n))
	if next := bytes.IndexByte(f.text[at:], '\n'); at > 0 && next >= 0 {
		at += next + 1
	}
	return valid(f.text[at:min(at+n, len(f.text))])
}

func (w *writer) bash(f file) call {
	out := w.output(f, around(w.rng, 400, 1.5, 30_000))
	command := []string{"go test ./" + path.Dir(f.name) + "/...", "git diff --stat HEAD~1",
		"go vet ./... && go build ./...",
		"ls -la " + path.Dir(f.name), "sed -n '1,120p' " + f.name, "git log --oneline -20 -- " + f.name}[w.rng.IntN(6)]
	return call{"Bash", newObject().text("command", command).text("description", cut(w.words(50), 60)).end(), quoted(out),
		newObject().text("stdout", out).text("stderr", "").raw("interrupted", "false").raw("isImage", "false").
			raw("noOutputExpected", "false").end()}
}

// output is what a command prints: results of tests, code, listings, errors.
func (w *writer) output(f file, n int) string {
	var b strings.Builder
	for b.Len() < n {
		switch w.rng.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "ok  \texample.org/%s\t%.3fs\n", path.Dir(f.name), w.rng.ExpFloat64())
		case 1:
			fmt.Fprintf(&b, "--- FAIL: Test%s (0.%02ds)\n    %s:%d: got %d, want %d\n", strings.ToUpper(path.Base(f.name)[:1]),
				w.rng.IntN(99), path.Base(f.name), w.rng.IntN(900), w.rng.IntN(1e6), w.rng.IntN(1e6))
		case 2:
			fmt.Fprintf(&b, "-rw-r--r-- 1 user user %6d Nov %2d %02d:%02d %s\n", w.rng.IntN(99_999), 1+w.rng.IntN(28),
				w.rng.IntN(24), w.rng.IntN(60), w.files[w.rng.IntN(len(w.files))].name)
		default:
			b.WriteString(passage(w.rng, f, min(n, 600)))
		}
	}
	return b.String()
}

func (w *writer) read(f file) call {
	lines := 40 + w.rng.IntN(160)
	text, count := firstLines(f.text[bytes.LastIndexByte(f.text[:w.rng.IntN(len(f.text))], '\n')+1:], lines)
	content, from := valid(text), 1+w.rng.IntN(400)
	var b strings.Builder
	for i, line := range strings.Split(content, "\n") {
		fmt.Fprintf(&b, "%6d→%s\n", from+i, line)
	}
	name := w.s.Cwd + "/" + f.name
	kept := newObject().text("filePath", name).text("content", content).number("numLines", count).
		number("startLine", from).number("totalLines", 2000).end()
	return call{"Read", newObject().text("file_path", name).number("offset", from).number("limit", lines).end(),
		quoted(b.String()), newObject().text("type", "text").raw("file", kept).end()}
}

func (w *writer) edit(f file) call {
	before := passage(w.rng, f, around(w.rng, 500, 1, 5000))
	after := strings.Replace(before, "err", "cause", 1) + passage(w.rng, f, around(w.rng, 200, 1, 4000))
	name := w.s.Cwd + "/" + f.name
	patch := make([]string, 0, 64)
	for line := range strings.Lines(before) {
		patch = append(patch, quoted("-"+strings.TrimSuffix(line, "\n")))
	}
	for line := range strings.Lines(after) {
		patch = append(patch, quoted("+"+strings.TrimSuffix(line, "\n")))
	}
	kept := newObject().text("filePath", name).text("oldString", before).text("newString", after).
		text("originalFile", valid(f.text[:min(len(f.text), 55_000)])).
		raw("structuredPatch", fmt.Sprintf(`[{"oldStart":%d,"oldLines":9,"newStart":%d,"newLines":12,"lines":[%s]}]`,
			w.rng.IntN(900), w.rng.IntN(900), strings.Join(patch, ","))).
		raw("userModified", "false").raw("replaceAll", "false").end()
	return call{"Edit", newObject().raw("replace_all", "false").text("file_path", name).text("old_string", before).
		text("new_string", after).end(), quoted("The file " + name + " has been updated successfully."), kept}
}

// image is a picture that was read: its base64 stands in the line twice.
func (w *writer) image() call {
	data := opaque(w.rng, around(w.rng, 90_000, .7, 480_000))
	name := w.s.Cwd + "/screenshot.png"
	source := `{"type":"base64","data":"` + data + `","media_type":"image/png"}`
	return call{"Read", newObject().text("file_path", name).end(), `[{"type":"image","source":` + source + `}]`,
		`{"type":"image","file":{"base64":"` + data + `","type":"image/png","originalSize":` +
			fmt.Sprint(len(data)*3/4) + `}}`}
}

// beside is what the program notes between the steps.
func (w *writer) beside() {
	switch w.rng.IntN(12) {
	case 0:
		w.attach(newObject().text("type", "hook_success").text("hookName", "PostToolUse:Bash").
			text("hookEvent", "PostToolUse").text("content", "").text("stdout", "").text("stderr", "").number("exitCode", 0).
			text("command", "ccship hook post-tool-use").number("durationMs", w.rng.IntN(40)))
	case 1, 2:
		output := valid(w.files[0].text[:min(len(w.files[0].text), around(w.rng, 300, 1, 4000))])
		w.add(w.seal(w.chain().text("type", "progress").raw("data", newObject().text("type", "bash_progress").
			text("output", output).text("fullOutput", output).number("elapsedTimeSeconds", 2).end()).
			text("toolUseID", "bash-progress-0")), time.Second)
	}
}
