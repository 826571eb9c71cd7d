package transcript

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut returns text, or its first limit characters and a note of the total: "…... (1234 chars total)". A limit of 0 or
// less cuts nothing.
func Cut(text string, limit int) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	n := 0
	for i := range text {
		if n == limit {
			return noteTotal([]byte(text[:i]), n+utf8.RuneCountInString(text[i:]))
		}
		n++
	}
	return text
}

func noteTotal(head []byte, total int) string {
	head = append(head, "... ("...)
	head = strconv.AppendInt(head, int64(total), 10)
	return string(append(head, " chars total)"...))
}

// OnlySpace reports whether the contents of a JSON string are nothing but white space.
func OnlySpace(raw []byte) bool {
	for len(raw) > 0 {
		_, size := utf8.DecodeRune(raw)
		char := raw[:size]
		if raw[0] == '\\' {
			char, size = appendEscape(nil, raw)
		}
		if len(bytes.TrimSpace(char)) > 0 {
			return false
		}
		raw = raw[size:]
	}
	return true
}

// CutEscaped is Cut for the contents of a JSON string. It does not decode what is cut off.
func CutEscaped(raw []byte, limit int) string {
	if len(raw) <= limit {
		return Unquote(raw)
	}
	head, rest, n := decodeHead(make([]byte, 0, limit+limit/4), raw, limit)
	if len(rest) == 0 {
		return string(head)
	}
	return noteTotal(head, n+count(rest))
}

// decodeHead appends the first limit characters of a JSON string's contents to dst; n is how many were appended.
func decodeHead(dst, raw []byte, limit int) (head, rest []byte, n int) {
	for len(raw) > 0 && n < limit {
		if raw[0] == '\\' {
			var size int
			dst, size = appendEscape(dst, raw)
			raw = raw[size:]
			n++
			continue
		}
		end := bytes.IndexByte(raw, '\\')
		if end < 0 {
			end = len(raw)
		}
		if end > limit-n {
			end = prefix(raw[:end], limit-n)
		}
		dst = append(dst, raw[:end]...)
		n += runes(raw[:end])
		raw = raw[end:]
	}
	return dst, raw, n
}

// appendEscape decodes the escape sequence at the start of raw and returns its length.
func appendEscape(dst, raw []byte) ([]byte, int) {
	if len(raw) < 2 {
		return append(dst, raw...), len(raw)
	}
	if raw[1] != 'u' {
		return append(dst, unescape(raw[1])), 2
	}
	r, size := unescapeRune(raw[1:])
	return utf8.AppendRune(dst, r), 1 + size
}

// prefix returns the number of bytes in the first n characters of b.
func prefix(b []byte, n int) int {
	if len(b) > n && runes(b[:n]) == n && utf8.RuneStart(b[n]) {
		return n // all ASCII
	}
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// count returns the number of characters in a JSON string's contents.
func count(raw []byte) int {
	n := 0
	for {
		slash := bytes.IndexByte(raw, '\\')
		if slash < 0 {
			return n + runes(raw)
		}
		n += runes(raw[:slash]) + 1
		raw = raw[slash:]
		switch {
		case len(raw) < 2:
			return n
		case raw[1] != 'u':
			raw = raw[2:]
		default:
			_, size := unescapeRune(raw[1:])
			raw = raw[1+size:]
		}
	}
}

// runes returns the number of characters in b: the bytes that do not continue one.
func runes(b []byte) int {
	n := len(b)
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		n -= bits.OnesCount64(x & ^(x << 1) & 0x8080808080808080)
		b = b[8:]
	}
	for _, c := range b {
		if c&0xc0 == 0x80 {
			n--
		}
	}
	return n
}

// OneLine puts text on one line of at most limit characters, without the escape sequences that colour it in a terminal;
// "…" marks what was cut off.
func OneLine(text string, limit int) string {
	var out []byte
	n, last, space := 0, 0, false
	add := func(r rune) {
		if n++; n == limit {
			last = len(out)
		}
		out = utf8.AppendRune(out, r)
	}
	coloured := 0 // 1 behind an escape, 2 in a sequence
	for _, r := range text {
		switch {
		case coloured == 1 && r == '[':
			coloured = 2
			continue
		case coloured == 2:
			if r < ' ' || r >= '@' {
				coloured = 0
			}
			continue
		}
		coloured = 0
		if r == '\x1b' {
			coloured = 1
			continue
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = n > 0
			continue
		}
		if space {
			add(' ')
			space = false
		}
		if add(r); n > limit {
			return strings.TrimRight(string(out[:last]), " ") + "…"
		}
	}
	return string(out)
}

// Reply is what the person says in a tool's result: an answer to a question, or words with which a tool was rejected.
type Reply struct {
	ToolID   string
	Text     string
	Rejected bool // the words came with a rejection
}

// rejections begin the results of tools that the person did not let run.
var rejections = []string{
	"The user doesn't want to", "User rejected tool use", "Permission for this tool use was denied",
	"The agent proposed a plan that was rejected by the user",
}

// Rejected reports whether a failed result says that the person did not let the tool run.
func Rejected(text string) bool {
	text = strings.TrimLeft(strings.TrimPrefix(text, "<tool_use_error>"), " \n")
	for _, begin := range rejections {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return strings.Contains(text, "The user doesn't want to proceed with this tool use")
}

// saidMarks stand before the words that came with a rejection, afterWords behind them.
var saidMarks = []string{
	"the user said:\n", "The user said:\n", "The user provided the following reason for the rejection:",
	"the user provided the following reason for the rejection:",
}

const afterWords = "\n\nNote: The user's next message"

// Replies returns what the person says in the record's tool results.
func (r *Record) Replies() (out []Reply) {
	if r.Type != "user" || r.Message == nil || r.Sidechain || r.Meta {
		return nil
	}
	for i := range r.Message.blocks {
		p := &r.Message.blocks[i]
		if p.Kind != ToolResultBlock {
			continue
		}
		if !p.Failed {
			if text := answersOf(r.ToolResult); text != "" {
				out = append(out, Reply{Unquote(p.ID), text, false})
			}
			continue
		}
		if text := rejectionWords(p.Output(maxSummary)); text != "" {
			out = append(out, Reply{Unquote(p.ID), text, true})
		}
	}
	return out
}

// rejectionWords returns the words that came with a rejection; "" if none did.
func rejectionWords(result string) string {
	if !Rejected(result) {
		return ""
	}
	for _, mark := range saidMarks {
		if _, words, found := strings.Cut(result, mark); found {
			words, _, _ = strings.Cut(words, afterWords)
			return strings.TrimSpace(words)
		}
	}
	return ""
}

// answersOf returns the answers to questions in a tool's result, and notes next to them, one on a line.
func answersOf(result []byte) string {
	if len(result) == 0 || result[0] != '{' {
		return ""
	}
	answers := field(result, "answers")
	if len(answers) == 0 || answers[0] != '{' || field(result, "questions") == nil {
		return ""
	}
	var all []string
	w := walkerOf(answers)
	for _, value, ok := w.member(); ok; _, value, ok = w.member() {
		if s := joinText(appendBlocks(nil, value)); s != "" {
			all = append(all, s)
		}
	}
	w = walkerOf(field(result, "annotations"))
	for _, value, ok := w.member(); ok; _, value, ok = w.member() {
		if s := StringField(value, "notes"); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n")
}
