package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// conversation writes one session's records as Claude Code does; all of it is invented. The same seed gives the same
// bytes. Not safe for concurrent use.
type conversation struct {
	rng     *rand.Rand
	session string
	cwd     string
	agent   string // set for an agent's transcript
	parent  string // uuid of the last record of the chain
	count   int
	pool    string // text to cut from
}

// newConversation begins a session; its id follows from the seed.
func newConversation(seed uint64, cwd string) *conversation {
	c := &conversation{rng: rand.New(rand.NewPCG(seed, 0x63637368)), cwd: cwd}
	c.session = c.uuid()
	c.pool = prose(c.rng, 64<<10)
	return c
}

// prose is n bytes of words, with what transcripts have in them: escapes, other scripts, emoji come from line.
func prose(rng *rand.Rand, n int) string {
	words := strings.Fields("the cart rounds each item before it sums so a total can be a cent off fix Round in cart.go run go test ./... " +
		"FAIL ok passed error: expected 10.05 got 10.04 func (c *Cart) Total() Money { return c.sum.Round(2) } internal/shop/cart_test.go:41 " +
		"because when then which returns nil err if != for range := append package import main string int64 bytes.Buffer")
	var b strings.Builder
	b.Grow(n + 16)
	for b.Len() < n {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(' ')
		if rng.IntN(12) == 0 {
			fmt.Fprintf(&b, "%08x ", rng.Uint32())
		}
	}
	return b.String()[:n]
}

func (c *conversation) uuid() string {
	a, b := c.rng.Uint64(), c.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(a), uint16(a>>32), uint16(a>>48)&0xfff, uint16(b)&0xfff, b>>16)
}

// text is about n bytes of words, quoted.
func (c *conversation) text(n int) string {
	var b strings.Builder
	for b.Len() < n {
		want := min(n-b.Len(), len(c.pool)/2)
		at := c.rng.IntN(len(c.pool) - want)
		b.WriteString(c.pool[at : at+want])
	}
	b.WriteString("\n\t한국어 \"quoted\" ✓ <tag>")
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false) // Claude Code writes < as it is
	if err := e.Encode(b.String()); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(quoted.String(), "\n")
}

// env is the end of every record of the chain.
func (c *conversation) env() string {
	return fmt.Sprintf(`"userType":"external","entrypoint":"cli","cwd":%q,"sessionId":%q,"version":"2.1.235","gitBranch":"main"`, c.cwd, c.session)
}

// head is the beginning of every record of the chain, and moves the chain on.
func (c *conversation) head() (head, id, stamp string) {
	c.count++
	parent := "null"
	if c.parent != "" {
		parent = `"` + c.parent + `"`
	}
	id = c.uuid()
	c.parent = id
	head = fmt.Sprintf(`{"parentUuid":%s,"isSidechain":%t`, parent, c.agent != "")
	if c.agent != "" {
		head += fmt.Sprintf(`,"agentId":%q`, c.agent)
	}
	stamp = fmt.Sprintf("2026-08-20T%02d:%02d:%02d.%03dZ", 9+c.count/36000%12, c.count/600%60, c.count/10%60, c.count%10*100)
	return head, id, stamp
}

// line is one record with its newline, of about size bytes (at least some 700).
func (c *conversation) line(size int) []byte {
	head, id, stamp := c.head()
	room := max(size-700, 20)
	var s string
	switch c.count % 4 {
	case 1:
		s = fmt.Sprintf(`%s,"promptId":%q,"type":"user","message":{"role":"user","content":%s},"uuid":%q,"timestamp":%q,"permissionMode":"default","origin":{"kind":"human"},"promptSource":"typed",%s}`,
			head, c.uuid(), c.text(room), id, stamp, c.env())
	case 2:
		s = fmt.Sprintf(`%s,"message":{"model":"claude-sonnet-5","id":"msg_%s","type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":%s}}],"stop_reason":"tool_use","usage":{"input_tokens":%d,"output_tokens":%d}},"requestId":"req_%d","type":"assistant","uuid":%q,"timestamp":%q,%s}`,
			head, id[:8], c.count, c.text(room), c.rng.IntN(1e5), c.rng.IntN(1e4), c.count, id, stamp, c.env())
	case 3:
		s = fmt.Sprintf(`%s,"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_%d","type":"tool_result","content":%s,"is_error":false}]},"uuid":%q,"timestamp":%q,"toolUseResult":{"stdout":"ok","stderr":"","interrupted":false},%s}`,
			head, c.count-1, c.text(room), id, stamp, c.env())
	default:
		s = fmt.Sprintf(`%s,"message":{"model":"claude-sonnet-5","id":"msg_%s","type":"message","role":"assistant","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":%d}},"requestId":"req_%d","type":"assistant","uuid":%q,"timestamp":%q,%s}`,
			head, id[:8], c.text(room), c.rng.IntN(1e5), c.rng.IntN(1e4), c.count, id, stamp, c.env())
	}
	return append([]byte(s), '\n')
}

// side is a record without uuid, as Claude Code repeats them every turn.
func (c *conversation) side() []byte {
	return fmt.Appendf(nil, "{\"type\":\"last-prompt\",\"lastPrompt\":%s,\"leafUuid\":%q,\"sessionId\":%q}\n", c.text(40), c.parent, c.session)
}

// even is n records of about size bytes each.
func (c *conversation) even(n, size int) []byte {
	var data []byte
	for range n {
		data = append(data, c.line(size)...)
	}
	return data
}

// mixed is n records whose sizes are those of real transcripts: half of them up to 1 KB, nine in ten up to 4 KB, one
// in two hundred above 64 KB.
func (c *conversation) mixed(n int) []byte {
	var data []byte
	for range n {
		switch p := c.rng.IntN(1000); {
		case p < 200:
			data = append(data, c.side()...)
		case p < 470:
			data = append(data, c.line(900)...)
		case p < 860:
			data = append(data, c.line(1000+c.rng.IntN(3000))...)
		case p < 995:
			data = append(data, c.line(4000+c.rng.IntN(20000))...)
		default:
			data = append(data, c.line(64<<10+c.rng.IntN(100<<10))...)
		}
	}
	return data
}

// megabytes is records of mixed sizes, of at least n bytes in all.
func (c *conversation) megabytes(n int) []byte {
	data := make([]byte, 0, n+256<<10)
	for len(data) < n {
		data = append(data, c.mixed(20)...)
	}
	return data
}
