package sink

import (
	"bytes"
	"encoding/json"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// The paths, each with how its bodies are read.
const (
	Conversations = "/api/conversations" // of ccship: entries, each a line with its number in front
	OTLP          = "/v1/logs"           // OpenTelemetry, protobuf
	Raw           = "/lines"             // lines as they are
)

// split calls each with every line of a body, without its newline.
func split(path string, body []byte, each func([]byte)) {
	switch path {
	case Conversations:
		var b struct {
			Entries []json.RawMessage `json:"entries"`
		}
		if json.Unmarshal(body, &b) == nil {
			for _, entry := range b.Entries {
				each(unnumbered(entry))
			}
		}
	case OTLP:
		logs(body, each)
	default:
		for line := range bytes.Lines(body) {
			each(bytes.TrimSuffix(line, []byte("\n")))
		}
	}
}

// count is how many lines a body has, without decoding it: quotes within a line are escaped in JSON.
func count(path string, body []byte) int {
	switch path {
	case Conversations:
		return bytes.Count(body, []byte(`{"line_index":`))
	case OTLP:
		n := 0
		logs(body, func([]byte) { n++ })
		return n
	}
	n := bytes.Count(body, []byte{'\n'})
	if len(body) > 0 && body[len(body)-1] != '\n' {
		n++
	}
	return n
}

// unnumbered is the line of an entry: without the number that comes first.
func unnumbered(entry []byte) []byte {
	rest, ok := bytes.CutPrefix(entry, []byte(`{"line_index":`))
	if !ok {
		return entry
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	rest = bytes.TrimPrefix(rest[digits:], []byte(","))
	return append([]byte{'{'}, rest...)
}

// logs finds the bodies of the log records of an ExportLogsServiceRequest: resource_logs = 1, scope_logs = 2,
// log_records = 2, body = 5, string_value = 1.
func logs(request []byte, each func([]byte)) {
	descend(request, []protowire.Number{1, 2, 2, 5, 1}, each)
}

// descend calls each with the fields at the end of a path of numbers of length-delimited fields.
func descend(message []byte, path []protowire.Number, each func([]byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return
		}
		if number == path[0] && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if len(path) == 1 {
				each(value)
			} else {
				descend(value, path[1:], each)
			}
		}
		message = message[n:]
	}
}

// Line is an invented line with a mark and some text.
func Line(n, length int, cwd string) string {
	head := `{"type":"user","uuid":"` + strconv.Itoa(n) + `","cwd":` + strconv.Quote(cwd) +
		`,"message":{"role":"user","content":"` + Mark + strconv.Itoa(n) + string(MarkEnd) + " "
	const tail = `"}}`
	fill := max(length-len(head)-len(tail), 1)
	return head + string(bytes.Repeat([]byte("word "), fill/5+1)[:fill]) + tail
}
