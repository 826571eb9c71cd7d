package transcript

import (
	"bytes"
	"strings"
)

// resultMembers are the members of a result's content that people read. What is encrypted, or says what kind of thing
// the content is, is not among them.
var resultMembers = map[string]string{
	"text": "", "title": "", "url": "", "stdout": "", "stderr": "", "error_code": "error: ", "tool_name": "",
	"error_message": "", "content": "", "lines": "", "source": "", "tool_references": "", "data": "", "context": "",
}

// resultText returns the text of a block of a tool's result whose type is not one of a message's: a web search, a page,
// an advice, the output of a program on the server, an error.
func (p *RawBlock) resultText(limit int) string {
	if p.Kind != OtherBlock ||
		!strings.Contains(string(p.Type), "result") && !strings.HasSuffix(string(p.Type), "reference") {
		return ""
	}
	var out strings.Builder
	appendResult(&out, p.Raw, limit, 0)
	return strings.TrimSpace(out.String())
}

func appendResult(out *strings.Builder, value []byte, limit, depth int) {
	if len(value) == 0 || depth > 2*maxNesting || out.Len() > limit*4 {
		return
	}
	w := walkerOf(value)
	switch value[0] {
	case '"':
		if s := strings.TrimSpace(CutEscaped(stringContents(value), limit)); s != "" {
			out.WriteString(s)
			out.WriteByte('\n')
		}
	case '[':
		for w.skipComma(); w.i < len(w.b) && w.b[w.i] != ']'; w.skipComma() {
			element := w.value(w.i)
			if len(element) == 0 {
				return
			}
			appendResult(out, element, limit, depth+1)
		}
	case '{':
		if bytes.Equal(stringContents(field(value, "type")), []byte("base64")) {
			return
		}
		for key, member, ok := w.member(); ok; key, member, ok = w.member() {
			if before, read := resultMembers[string(key)]; read {
				out.WriteString(before)
				appendResult(out, member, limit, depth+1)
			}
		}
	}
}
