package transcript_test

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	. "github.com/ccship/ccship/transcript"
)

func TestToolSummary(t *testing.T) {
	for _, tt := range []struct{ name, input, want, object string }{
		{"Read", `{"file_path":"/a b.go","offset":3}`, "/a b.go", `{"file_path":"/a b.go"}`},
		{"Edit", `{"replace_all":false,"file_path":"/a","old_string":"{\"file_path\":\"no\"}"}`, "/a", `{"file_path":"/a"}`},
		{"NotebookEdit", `{"notebook_path":"/n.ipynb","new_source":"x"}`, "/n.ipynb", `{"notebook_path":"/n.ipynb"}`},
		{"Bash", `{"command":"\n go test ./... \necho","description":"Test"}`, "Test: go test ./...", `{"description":"Test","command":"go test ./..."}`},
		{"Grep", `{"pattern":"a\\.b","path":"src","-n":true}`, `a\.b in src`, `{"pattern":"a\\.b","path":"src"}`},
		{"Glob", `{"pattern":"**/*.go"}`, "**/*.go", `{"pattern":"**/*.go"}`},
		{"TodoWrite", `{"todos":[{"content":"x"}],"b":null}`, `[{"content":"x"}], null`, `{"todos":[{"content":"x"}],"b":null}`},
		{"Read", `{}`, "", `{}`},
		{"Read", `null`, "", `{}`},
		{"Read", ``, "", `{}`},
		{"Read", `{"file_path":7}`, "7", `{"file_path":7}`},
	} {
		kit.Equal(t, fmt.Sprintf("%s %s: summary", tt.name, tt.input), ToolSummary(tt.name, []byte(tt.input), 0), tt.want)
		kit.Equal(t, fmt.Sprintf("%s %s: input", tt.name, tt.input), string(ToolInput(tt.name, []byte(tt.input), 0)),
			tt.object)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 5, ""}, {"abcde", 5, "abcde"}, {"abcdef", 5, "abcde... (6 chars total)"}, {"가나다라마", 5, "가나다라마"},
		{"가나다라마바", 5, "가나다라마... (6 chars total)"}, {"abc", 0, "abc"}, {"abc", -1, "abc"},
	} {
		kit.Equal(t, fmt.Sprintf("Cut(%q, %d)", tt.text, tt.limit), Cut(tt.text, tt.limit), tt.want)
	}
}
