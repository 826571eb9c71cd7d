package transcript_test

import (
	"testing"

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
		if got := ToolSummary(tt.name, []byte(tt.input), 0); got != tt.want {
			t.Errorf("%s %s: summary is %q, want %q", tt.name, tt.input, got, tt.want)
		}
		if got := string(ToolInput(tt.name, []byte(tt.input), 0)); got != tt.object {
			t.Errorf("%s %s: input is %s, want %s", tt.name, tt.input, got, tt.object)
		}
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
		if got := Cut(tt.text, tt.limit); got != tt.want {
			t.Errorf("Cut(%q, %d) is %q, want %q", tt.text, tt.limit, got, tt.want)
		}
	}
}
