//go:build unix

package viewer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ccship/ccship/e2e/kit"
)

// focused is an expression for what the focused element says.
const focused = `document.activeElement.innerText || document.activeElement.value || ""`

// TestKeyboard goes through list and conversation without a mouse.
func TestKeyboard(t *testing.T) {
	b, _ := reader(t)
	titles := eval[[]string](b, `[...document.querySelectorAll("[data-row] a.title")].map((e) => e.innerText)`)
	for _, step := range []struct {
		key  string
		want string
	}{{"j", titles[0]}, {"j", titles[1]}, {"j", titles[2]}, {"k", titles[1]}, {"k", titles[0]}} {
		b.pressWait(step.key, step.key+" goes to "+step.want, focused+" === "+quoted(step.want))
	}
	b.pressWait("?", "the help is open", `document.querySelector("dialog").open`)
	b.reads("dialog", "j", "k", "/")
	b.pressWait("j", "keys rest while the help is open", `!document.activeElement.closest("[data-row]")`)
	b.pressWait(kb.Escape, "the help is closed", `!document.querySelector("dialog").open`)
	b.pressWait("j", "the focus is back", focused+" === "+quoted(titles[1])+" || "+focused+" === "+quoted(titles[0]))
	b.pressWait("/", "the search field has the focus", `document.activeElement.id === "find"`)
	b.press("j", "g")
	b.wait("a field takes keys as text", `document.querySelector("#find").value === "jg"`)
	b.pressWait(kb.Escape, "Escape leaves the field", `document.activeElement.id !== "find"`)
	b.press("j", kb.Enter)
	b.wait("Enter opens the session", `document.querySelector("#items")`)
	b.loaded()
	b.open("/sessions/" + taleID)
	b.pressWait("n", "n goes to a prompt", `document.activeElement.matches(".item.prompt")`)
	b.pressWait("n", "and to the next", focused+`.includes("Now the quiet hours")`)
	b.pressWait("p", "p goes back", focused+`.includes(`+quoted(talePrompt)+`)`)
	b.pressWait("j", "j goes to the item behind", `document.activeElement.matches(".item.answer:has(details.think)")`)
	b.pressWait(kb.Enter, "Enter unfolds", `document.activeElement.querySelector("details").open`)
	b.pressWait("e", "e unfolds everything", `![...document.querySelectorAll("details.tool, details.think")].some((d) => !d.open)`)
	b.pressWait("e", "and folds it", `![...document.querySelectorAll("details.tool, details.think")].some((d) => d.open)`)
}

// TestTabOrder: the tab key goes from beginning to end, each stop shows its focus, and a fold opens by key.
func TestTabOrder(t *testing.T) {
	b, _ := reader(t)
	for _, path := range []string{"/", "/sessions/" + taleID, "/search?q=hours", "/usage", "/account"} {
		b.open(path)
		eval[any](b, `document.activeElement.blur(), getSelection().removeAllRanges(), scrollTo(0, 0)`)
		if path == "/" {
			b.pressWait(kb.Tab, "the first stop is the way past the navigation", `document.activeElement.matches(".skip") && document.activeElement.getBoundingClientRect().left >= 0`)
			b.press(kb.Enter, kb.Tab)
			b.wait("it leads to the content", `document.activeElement.closest("main")`)
		}
		for _, fault := range eval[[]string](b, `audit.order()`) {
			t.Errorf("%s: %s", path, fault)
		}
	}
	b.open("/sessions/" + taleID)
	fold := openTool(b, "24 \\* time.Hour")
	eval[any](b, one(fold+" > summary")+".focus()")
	b.pressWait(" ", "the space bar folds", "!"+one(fold)+".open")
	b.pressWait(kb.Enter, "Enter unfolds", one(fold)+".open")
}

// quoted is a text as JavaScript.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string has none
	}
	return string(b)
}

// one is an expression for the first element that matches.
func one(selector string) string { return "document.querySelector(" + quoted(selector) + ")" }

// click presses the mouse on the first match. A page may move meanwhile; then it is made again, as a person would.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.wait(selector+" is there", one(selector))
	b.loaded() // before that nothing may come of it
	for range 100 {
		if b.pressed(selector) {
			return
		}
		b.t.Logf("the page moved, and the click on %s fell beside it", selector)
	}
	b.t.Fatalf("no click reaches %s\n%s", selector, b.excerpt())
}

// pressWait presses a key, and waits for what comes of it.
func (b *tab) pressWait(key, what, expression string) {
	b.t.Helper()
	b.press(key)
	b.wait(what, expression)
}

// clickWait clicks, and waits for what comes of it.
func (b *tab) clickWait(selector, what, expression string) {
	b.t.Helper()
	b.click(selector)
	b.wait(what, expression)
}

// pressed reports whether the press reached the element. A page that it left was reached too.
func (b *tab) pressed(selector string) bool {
	b.t.Helper()
	eval[any](b, `((e) => {
		window.reached = false;
		e.addEventListener("click", () => { window.reached = true; }, { once: true, capture: true });
		e.scrollIntoView({ block: "center" });
	})(`+one(selector)+`)`)
	b.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
	return b.mute || eval[bool](b, `window.reached !== false`)
}

// press types keys, each going down and up: a page can keep a key from becoming text, as with a real keyboard.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	b.loaded() // before that no page takes a key
	for _, k := range keys {
		events := kb.Encode([]rune(k)[0])
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		call(b, input.DispatchKeyEvent, down)
		call(b, input.DispatchKeyEvent, up)
	}
}

// fill types a text into a field that is empty, and presses Enter.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do("fill "+selector, chromedp.SendKeys(chromedp.CSS(selector), text+"\r", chromedp.NodeVisible))
}

// text is what can be read in the first element that matches; "" when there is none.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, "("+one(selector)+`?.innerText || "").trim()`)
}

// count is how many elements match.
func (b *tab) count(selector string) int {
	b.t.Helper()
	return eval[int](b, "document.querySelectorAll("+quoted(selector)+").length")
}

// reads demands that all texts can be read somewhere in the element.
func (b *tab) reads(selector string, texts ...string) {
	b.t.Helper()
	got := b.text(selector)
	for _, want := range texts {
		kit.Check(b.t, strings.Contains(got, want), "%s lacks %q:\n%s", selector, want, brief(got))
	}
}

// login goes to the login page and logs in with a key.
func (b *tab) login(key string) {
	b.t.Helper()
	b.open("/login")
	b.wait("the key can be typed at once", `document.activeElement === document.querySelector("#key")`)
	b.fill("#key", key)
	b.wait("logged in", `document.readyState === "complete" && !document.querySelector("#key")`)
}

// picture is what the window shows, as PNG.
func (b *tab) picture() []byte {
	b.t.Helper()
	return kit.Try(chromedp.Run(b.ctx, chromedp.CaptureScreenshot())).Must(b.t)
}

func itoa(n int) string { return strconv.Itoa(n) }

// brief is a text on one line, not too long.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 1500 {
		s = s[:1500] + "…"
	}
	return s
}

// object is a JSON object.
type object = map[string]any

// script writes a transcript record by record, in the forms of Claude Code.
type script struct {
	id, cwd, branch, model string
	agent                  string // of an agent's transcript
	at                     time.Time
	context                int64 // tokens in the model's window
	lines                  []string

	parent  any // uuid of the record before; nil at first
	records int
	answers int
	fresh   int64 // tokens that are not in the cache yet
}

// record appends a record of the conversation's tree and answers its uuid.
func (s *script) record(r object) string {
	s.records++
	id := fmt.Sprintf("%s-%04d", s.id[:8], s.records)
	if s.agent != "" {
		id = s.agent[:8] + id[8:]
		r["agentId"] = s.agent
	}
	r["uuid"], r["parentUuid"], r["isSidechain"] = id, s.parent, s.agent != ""
	r["timestamp"], r["sessionId"], r["cwd"], r["gitBranch"], r["version"], r["userType"] =
		s.at.UTC().Format("2006-01-02T15:04:05.000Z"), s.id, s.cwd, s.branch, "2.1.328", "external"
	s.parent = id
	s.plain(r)
	return id
}

// plain appends a record as it is.
func (s *script) plain(r object) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		panic(err) // maps of strings, numbers and lists always can be written
	}
	s.lines = append(s.lines, string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
}

// wait lets time go by between two records.
func (s *script) wait(d time.Duration) { s.at = s.at.Add(d) }

func (s *script) user(content any, more object) string {
	s.fresh += 400
	r := object{"type": "user", "message": object{"role": "user", "content": content}}
	for k, v := range more {
		r[k] = v
	}
	return s.record(r)
}

// prompt is what a human typed; blocks come with it, such as pictures.
func (s *script) prompt(text string, blocks ...object) string {
	s.wait(40 * time.Second)
	var content any = text
	if len(blocks) > 0 {
		list := []object{{"type": "text", "text": text}}
		content = append(list, blocks...)
	}
	if s.agent != "" {
		return s.user(content, nil)
	}
	return s.user(content, object{"promptSource": "typed", "origin": object{"kind": "human"}, "permissionMode": "default"})
}

// answer is one response of the model, a record for each block. All have its usage.
func (s *script) answer(out int64, blocks ...object) {
	s.wait(time.Duration(3+out/90) * time.Second)
	s.answers++
	usage := object{"input_tokens": 14, "output_tokens": out, "cache_read_input_tokens": s.context, "cache_creation_input_tokens": s.fresh,
		"cache_creation": object{"ephemeral_5m_input_tokens": s.fresh, "ephemeral_1h_input_tokens": 0}}
	s.context, s.fresh = s.context+s.fresh, out
	id := fmt.Sprintf("msg_%s%s%04d", s.id[:8], s.agent, s.answers)
	for _, block := range blocks {
		s.record(object{"type": "assistant", "requestId": "req_" + id[4:], "message": object{"id": id, "type": "message", "role": "assistant",
			"model": s.model, "content": []object{block}, "stop_reason": nil, "usage": usage}})
	}
}

func words(text string) object { return object{"type": "text", "text": text} }

func thought(text string) object {
	return object{"type": "thinking", "thinking": text, "signature": "c2ln"}
}

func use(id, name string, input object) object {
	return object{"type": "tool_use", "id": id, "name": name, "input": input}
}

func picture(kind string, data []byte) object {
	return object{"type": "image", "source": object{"type": "base64", "media_type": kind, "data": base64.StdEncoding.EncodeToString(data)}}
}

// say is an answer of words alone.
func (s *script) say(text string) { s.answer(int64(120+len(text)/3), words(text)) }

// call names the next tool call.
func (s *script) call() string { return fmt.Sprintf("toolu_%s%s%04d", s.id[:8], s.agent, s.records) }

// tool is a call and its result, outcome what the program itself keeps of it.
func (s *script) tool(name string, input object, result any, outcome any, took time.Duration) {
	id := s.call()
	s.answer(260, use(id, name, input))
	s.result(id, result, outcome, took, false)
}

func (s *script) result(id string, result any, outcome any, took time.Duration, failed bool) {
	s.wait(took)
	if text, ok := result.(string); ok {
		s.fresh += int64(len(text) / 3)
	}
	s.user([]object{{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}}, object{"toolUseResult": outcome})
}

// bash runs a command.
func (s *script) bash(command, what, out string, took time.Duration) {
	s.tool("Bash", object{"command": command, "description": what}, out,
		object{"stdout": out, "stderr": "", "interrupted": false, "isImage": false}, took)
}

// edit changes a file; lines are those of the patch, with their signs.
func (s *script) edit(path, before, after string, start int, lines ...string) {
	s.tool("Edit", object{"file_path": path, "old_string": before, "new_string": after}, "The file "+path+" has been updated.",
		object{"filePath": path, "oldString": before, "newString": after,
			"structuredPatch": []object{{"oldStart": start, "newStart": start, "oldLines": len(lines), "newLines": len(lines), "lines": lines}}}, 80*time.Millisecond)
}

// read reads a file.
func (s *script) read(path, content string, start int) {
	s.tool("Read", object{"file_path": path}, content, object{"type": "text", "file": object{"filePath": path, "content": content,
		"numLines": bytes.Count([]byte(content), []byte("\n")), "startLine": start, "totalLines": 240}}, 40*time.Millisecond)
}

// titled names the session.
func (s *script) titled(title string) {
	s.plain(object{"type": "ai-title", "aiTitle": title, "sessionId": s.id})
}

// compact is a compaction: the boundary and the summary behind it.
func (s *script) compact(trigger, summary string, left int64) {
	before := s.context + s.fresh
	leaf := s.parent
	s.wait(50 * time.Second)
	s.parent = nil
	s.record(object{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": leaf, "level": "info",
		"compactMetadata": object{"trigger": trigger, "preTokens": before, "postTokens": left, "durationMs": 41200}})
	s.user(summary, object{"isCompactSummary": true, "isVisibleInTranscriptOnly": true})
	s.context, s.fresh = 0, left
}

// bytes are the lines as they stand in the file.
func (s *script) bytes() []byte {
	var b bytes.Buffer
	for _, l := range s.lines {
		b.WriteString(l + "\n")
	}
	return b.Bytes()
}
