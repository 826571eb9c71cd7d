package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// TestRedactTestUTF16 shows what is masked in UTF-16 as in another text, and nothing in what is no text.
func TestRedactTestUTF16(t *testing.T) {
	t.Parallel()
	c := &config.Config{Path: filepath.Join(t.TempDir(), "config.toml")}
	const text = "some words\nTOKEN=ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234\n"
	wide := "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
	var tokens []string
	for _, in := range []string{text, wide} {
		report, err := findSecrets(c, []byte(in))
		kit.Require(t, err == nil && len(report.Secrets) == 1 && report.Secrets[0].Line == 2, "%q: %+v, %v", in, report, err)
		tokens = append(tokens, report.Secrets[0].Token)
	}
	kit.Check(t, tokens[0] == tokens[1], "%q", tokens)
	report, err := findSecrets(c, []byte("\x89PNG\x00"+text))
	kit.Check(t, err == nil && len(report.Secrets) == 0, "%+v, %v", report, err)
}

// masker is a Daemon with lines that would be masked differently now, in two answers.
type masker struct {
	control.Daemon
	asked *[]control.RemaskRequest
	none  bool
}

func (masker) Status(context.Context) control.Status { return control.Status{Running: true} }

func (m masker) Remask(_ context.Context, req control.RemaskRequest) (control.RemaskResult, error) {
	*m.asked = append(*m.asked, req)
	r := control.RemaskResult{SchemaVersion: 1, Total: 30, Transcripts: 1, Lines: 3, Clear: 2, Resent: 40}
	if m.none {
		r = control.RemaskResult{SchemaVersion: 1, Total: 30}
	}
	if req.Old {
		r = control.RemaskResult{SchemaVersion: 1, Old: &control.OldBytes{Total: 9, Transcripts: 1, Lines: 4, Files: 1,
			Plain: []string{"http://plain"}}}
		if m.none {
			r.Old = &control.OldBytes{Total: 9}
		}
		if req.Offset == 0 {
			r.Old.Next = 7
		}
		return r, nil
	}
	if req.Offset == 0 {
		r.Next = 20
	}
	return r, nil
}

// TestRedactApply counts first, and sends again only with --yes.
func TestRedactApply(t *testing.T) {
	for _, c := range []struct {
		args []string
		none bool
		says string
		want []control.RemaskRequest
	}{
		{nil, false, "add --yes to send 80 lines again", []control.RemaskRequest{{DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--yes"}, false, "6 lines in 2 transcripts would be masked differently now, 4 lines of them sent with secrets in clear",
			[]control.RemaskRequest{{DryRun: true}, {DryRun: true, Offset: 20}, {}, {Offset: 20}}},
		{[]string{"--yes"}, true, "every line as the rules in force mask it", []control.RemaskRequest{{DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--forget-old"}, false, "8 lines of every generation, 0 checkpoints and 2 files with secrets, of 2 transcripts",
			[]control.RemaskRequest{{DryRun: true, Old: true}, {DryRun: true, Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--forget-old"}, false, "http://plain speaks only the base protocol",
			[]control.RemaskRequest{{DryRun: true, Old: true}, {DryRun: true, Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--forget-old", "--yes"}, false, "masked there", []control.RemaskRequest{{DryRun: true, Old: true},
			{DryRun: true, Old: true, Offset: 7}, {Old: true}, {Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}, {}, {Offset: 20}}},
		{[]string{"--forget-old", "--yes"}, true, "stored nothing in the clear", []control.RemaskRequest{{DryRun: true, Old: true},
			{DryRun: true, Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--forget-old", "--json"}, false, `"old":{"total":9,"transcripts":2`, []control.RemaskRequest{{DryRun: true, Old: true},
			{DryRun: true, Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--json"}, false, `"resent":80`, []control.RemaskRequest{{DryRun: true}, {DryRun: true, Offset: 20}}},
	} {
		jsonHome(t)
		var asked []control.RemaskRequest
		socket := listen(t, masker{asked: &asked, none: c.none})
		code, out, words := inProcess(t, append([]string{"redact", "apply", "--socket", socket}, c.args...)...)
		kit.Check(t, code == 0 && strings.Contains(out+words, c.says), "%v: %d, %s %s", c.args, code, out, words)
		if len(asked) != len(c.want) {
			t.Errorf("%v: asked %+v", c.args, asked)
			continue
		}
		for i := range asked {
			kit.Check(t, asked[i] == c.want[i], "%v: asked %+v, want %+v", c.args, asked[i], c.want[i])
		}
	}
}
