package corpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Chunk is consecutive lines of one generation of a transcript.
type Chunk struct {
	Generation, RewoundTo int
	Line                  int   // of the first one
	Offset                int64 // where it begins in the file
	Lines                 []string
}

// writer writes one transcript.
type writer struct {
	src    *Source
	rng    *rand.Rand
	s      Session
	files  []file // that the session works on
	at     file   // the one that the last step was about
	env    string
	now    time.Time
	parent string
	prompt string // its id
	model  string
	ctx    int // tokens of the conversation so far
	turns  int
	lines  []string
	bytes  int64
}

// Chunks makes the session's lines: of one generation, or of two when it was rewound. The same session and source give
// the same lines.
func (s Session) Chunks(src *Source) []Chunk {
	if s.given != nil {
		return []Chunk{{Lines: strings.Split(strings.TrimSuffix(string(s.given), "\n"), "\n")}}
	}
	w := newWriter(src, s)
	for w.bytes < s.Bytes {
		w.turn()
	}
	first := Chunk{Lines: w.lines}
	if !s.Rewound || len(w.lines) < 20 {
		return []Chunk{first}
	}
	keep := len(w.lines) * 3 / 4
	var offset int64
	for _, line := range w.lines[:keep] {
		offset += int64(len(line)) + 1
	}
	w.lines = nil
	w.turn()
	return []Chunk{first, {Generation: 1, RewoundTo: keep, Line: keep, Offset: offset, Lines: w.lines}}
}

// Live returns a function that makes one line after the other, for as long as it is asked.
func (s Session) Live(src *Source) func() string {
	s.Bytes = math.MaxInt64
	w := newWriter(src, s)
	return func() string {
		for len(w.lines) == 0 {
			w.turn()
		}
		line := w.lines[0]
		w.lines = w.lines[1:]
		return line
	}
}

func newWriter(src *Source, s Session) *writer {
	rng := rand.New(rand.NewPCG(s.seed, 0x6c696e65))
	w := &writer{src: src, rng: rng, s: s, now: s.Start, ctx: 18_000 + rng.IntN(20_000)}
	var project uint64
	_, _ = fmt.Sscanf(s.Project, "%x", &project) // it is always a number
	all := src.project(project * 7919)
	for range 10 {
		w.files = append(w.files, all[rng.IntN(len(all))])
	}
	w.model = []string{"claude-sonnet-5", "claude-sonnet-5", "claude-opus-5", "claude-haiku-4-5"}[rng.IntN(4)]
	id := s.ID
	if s.Parent != "" {
		id = s.Parent
	}
	w.env = string(newObject().text("userType", "external").text("entrypoint", "cli").text("cwd", s.Cwd).
		text("sessionId", id).text("version", "2.1.235").text("gitBranch", branches[rng.IntN(len(branches))])[1:])
	return w
}

var branches = []string{"main", "main", "main", "fix-rounding", "feature/search", "HEAD"}

// add writes a line, after a pause as long as what it records took.
func (w *writer) add(line string, took time.Duration) {
	w.lines = append(w.lines, line)
	w.bytes += int64(len(line)) + 1
	w.now = w.now.Add(took)
}

// chain is the beginning of a record of the message tree; the next record's parent is this one.
func (w *writer) chain() object {
	o := newObject()
	if w.parent == "" {
		o = o.raw("parentUuid", "null")
	} else {
		o = o.text("parentUuid", w.parent)
	}
	if w.s.agent != "" {
		return o.raw("isSidechain", "true").text("agentId", w.s.agent)
	}
	return o.raw("isSidechain", "false")
}

// seal is the end of a record of the message tree.
func (w *writer) seal(o object) string {
	w.parent = uuid(w.rng)
	return append(append(o.text("uuid", w.parent).text("timestamp", stamp(w.now)), ','), w.env...).end()
}

// words is a text of a person or of an answer.
func (w *writer) words(n int) string {
	if w.s.korean && w.rng.IntN(10) < 7 {
		return w.src.korean(w.rng, n)
	}
	return w.src.text(w.rng, n)
}

// turn is a prompt, what follows of it, and the end of the turn.
func (w *writer) turn() {
	w.turns++
	w.ask()
	steps := around(w.rng, 6, 1, 60) - 3
	if w.s.Bytes < 10_000 { // a session that is only listed
		steps = 0
	}
	for ; steps > 0 && w.bytes < w.s.Bytes; steps-- {
		w.step()
		w.beside()
	}
	w.answer()
	if w.s.agent == "" {
		w.close()
	}
	if w.ctx > 167_000 {
		w.compact()
	}
}

// ask is what a person says, or what an agent is asked.
func (w *writer) ask() {
	w.prompt = uuid(w.rng)
	text := w.words(around(w.rng, 120, 1.2, 8000))
	if w.s.rare && w.turns == 1 {
		text += " " + RareWord
	}
	if w.s.korean && w.rng.IntN(3) == 0 {
		text += " " + KoreanWord + " 합계가 다릅니다"
	}
	if w.s.agent == "" {
		w.add(newObject().text("type", "file-history-snapshot").text("messageId", w.prompt).raw("snapshot", newObject().
			text("messageId", w.prompt).raw("trackedFileBackups", "{}").text("timestamp", stamp(w.now)).end()).
			raw("isSnapshotUpdate", "false").end(), 0)
	}
	message := newObject().text("role", "user").text("content", text).end()
	o := w.chain().text("promptId", w.prompt).text("type", "user").raw("message", message).
		text("permissionMode", "default")
	if w.s.agent == "" {
		o = o.raw("origin", `{"kind":"human"}`).text("promptSource", "typed")
	}
	w.add(w.seal(o), 2*time.Second)
	w.ctx += len(text) / 4
	if w.turns == 1 {
		w.attach(newObject().text("type", "skill_listing").text("content", w.src.text(w.rng, 13_000)))
	}
}

// answer is text, and what the turn cost.
func (w *writer) answer() {
	text := w.words(around(w.rng, 400, 1, 18_000))
	message := token(w.rng, "msg_01", 22)
	w.think(message, "end_turn")
	w.say(message, newObject().text("type", "text").text("text", text).end(), "end_turn")
	w.ctx += len(text) / 4
}

// think is the thinking of an answer, which is mostly only a signature.
func (w *writer) think(message, stop string) {
	if w.rng.IntN(2) == 0 {
		return
	}
	var text string
	if w.rng.IntN(2) == 0 {
		text = w.src.text(w.rng, around(w.rng, 400, 1, 13_000))
	}
	w.say(message, newObject().text("type", "thinking").text("thinking", text).
		text("signature", opaque(w.rng, around(w.rng, 584, 1.1, 50_000))).end(), stop)
}

// say is one block of an answer.
func (w *writer) say(message, block, stop string) {
	o := newObject().text("model", w.model).text("id", message).text("type", "message").text("role", "assistant").
		raw("content", "["+block+"]").text("stop_reason", stop).raw("stop_sequence", "null").raw("usage", w.usage())
	w.add(w.seal(w.chain().raw("message", o.end()).text("requestId", "req_01"+message[6:]).
		text("type", "assistant")), time.Duration(1+w.rng.IntN(9))*time.Second)
}

func (w *writer) usage() string {
	out, fresh := around(w.rng, 250, 1, 16_000), around(w.rng, 900, 1, 30_000)
	cache := fmt.Sprintf(`"cache_creation":{"ephemeral_1h_input_tokens":%d,"ephemeral_5m_input_tokens":0}`, fresh)
	sums := fmt.Sprintf(`"input_tokens":2,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,`+
		`"output_tokens":%d,`, fresh, w.ctx, out)
	return "{" + sums + `"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":"standard",` +
		cache + `,"inference_geo":"not_available","iterations":[{` + sums + cache + `,"type":"message"}],"speed":"standard"}`
}

// attach is a record of something that the model was given.
func (w *writer) attach(o object) {
	w.add(w.seal(w.chain().raw("attachment", o.end()).text("type", "attachment")), 0)
}

// close is the end of a turn.
func (w *writer) close() {
	w.add(w.seal(w.chain().text("type", "system").text("subtype", "stop_hook_summary").number("hookCount", 1).
		raw("hookInfos", `[{"command":"ccship hook stop"}]`).raw("hookErrors", "[]").
		raw("preventedContinuation", "false").text("stopReason", "").raw("hasOutput", "false").
		text("level", "suggestion")), 0)
	w.add(w.seal(w.chain().text("type", "system").text("subtype", "turn_duration").
		number("durationMs", 1000+w.rng.IntN(200_000)).number("messageCount", len(w.lines)).raw("isMeta", "false")),
		time.Duration(w.rng.IntN(600))*time.Second)
	if w.turns%4 == 1 {
		w.add(newObject().text("type", "ai-title").text("aiTitle", cut(w.words(40), 60)).text("sessionId", w.s.ID).end(), 0)
		w.add(newObject().text("type", "permission-mode").text("permissionMode", "default").
			text("sessionId", w.s.ID).end(), 0)
	}
}

// compact is a compaction: its boundary and the summary that the conversation goes on from.
func (w *writer) compact() {
	last := w.parent
	w.parent = ""
	w.add(w.seal(w.chain().text("logicalParentUuid", last).text("type", "system").text("subtype", "compact_boundary").
		text("content", "Conversation compacted").raw("isMeta", "false").text("level", "info").
		raw("compactMetadata", fmt.Sprintf(`{"trigger":"auto","preTokens":%d,"postTokens":9120,"durationMs":41200}`, w.ctx))),
		time.Minute)
	w.ctx = 25_000
	text := "This session is being continued from a previous conversation that ran out of context.\n" + w.words(9_000)
	w.add(w.seal(w.chain().text("promptId", w.prompt).text("type", "user").
		raw("message", newObject().text("role", "user").text("content", text).end()).
		raw("isVisibleInTranscriptOnly", "true").raw("isCompactSummary", "true")), 0)
}
