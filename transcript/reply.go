package transcript

import "strings"

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
