package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/doctor"
)

// reports are what a doctor may say: at its best, with something to look at, broken, and after mending.
func reports() map[string]doctor.Report {
	well := []doctor.Finding{
		{ID: "daemon", Level: doctor.OK, Text: "running for 3 days (pid 4711)"},
		{ID: "version", Level: doctor.OK, Text: "daemon and command line are 1.2.3"},
		{ID: "service", Level: doctor.OK, Text: "installed (systemd-user), starts by itself"},
		{ID: "dead_letters", Level: doctor.OK, Text: "none"},
	}
	note := doctor.Finding{ID: "excluded", Level: doctor.Note, Text: "2 transcripts are left out: excluded, or opted out by their projects", Fix: "`ccship exclude list` says why"}
	warn := doctor.Finding{
		ID: "outbox", Level: doctor.Warn, Text: "1204 entries wait, the oldest for 3 hours", Fix: "`ccship sync --wait`", Safe: true,
	}
	fails := []doctor.Finding{
		{ID: "key", Level: doctor.Fail, Text: "API key file /home/kim/.config/ccship/api_key may be read or changed by others (mode 0644)", Detail: "it is not used until then", Fix: "`chmod 600 /home/kim/.config/ccship/api_key`", Safe: true},
		{ID: "retention", Level: doctor.Fail, Text: "3 sessions will be deleted by Claude Code within 7 days and are not yet on the server", Detail: "first any time now: /home/kim/.claude/projects/-home-kim-web/1c0e.jsonl\nand more", Fix: "`ccship sync --wait`"},
	}
	fixes := []doctor.Fix{
		{ID: "key", Command: "chmod 600 /home/kim/.config/ccship/api_key", Done: true},
		{ID: "outbox", Command: "ccship sync --wait", Error: "not everything could be delivered: connection refused", Hint: "`ccship status` says what is in the way; it goes on by itself"},
	}
	all := func(parts ...[]doctor.Finding) (out []doctor.Finding) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	report := func(failed, warned int, findings []doctor.Finding) doctor.Report {
		return doctor.Report{SchemaVersion: 1, Version: "1.2.3", OK: failed == 0, Failed: failed, Warned: warned, Findings: findings}
	}
	mended := report(1, 1, all(fails[1:], []doctor.Finding{warn, note}, well))
	mended.Fixes = fixes
	return map[string]doctor.Report{
		"well":   report(0, 0, all([]doctor.Finding{note}, well)),
		"warned": report(0, 1, all([]doctor.Finding{warn}, well)),
		"broken": report(2, 1, all(fails, []doctor.Finding{warn, note}, well)),
		"mended": mended,
	}
}

func TestDoctorView(t *testing.T) {
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			golden(t, "doctor_"+name+".txt", doctorView{width: 80, symbols: true}.render(r, name == "mended"))
		})
	}
	ascii := doctorView{}.render(reports()["broken"], false)
	golden(t, "doctor_ascii.txt", ascii)
	if strings.ContainsFunc(ascii, func(r rune) bool { return r > '~' }) {
		t.Errorf("not ASCII: %q", ascii)
	}
	if nothing := (doctorView{symbols: true}).render(reports()["well"], true); !strings.Contains(nothing, "\nnothing to mend that is safe to mend\n") {
		t.Errorf("%s", nothing)
	}
}

// On a narrow screen no line is longer than it, but for words that have to be copied; colours change no text.
func TestDoctorNarrow(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		plain := doctorView{width: width, symbols: true}.render(reports()["broken"], false)
		for line := range strings.Lines(plain) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > width && len(words(line)) > 2 && !strings.HasPrefix(line, "`ccship doctor") && !strings.Contains(line, "ccship doctor:") {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		coloured := doctorView{width: width, symbols: true, colour: true}.render(reports()["broken"], false)
		if strings.Count(coloured, "\x1b[") == 0 || uncoloured(coloured) != plain {
			t.Errorf("%d columns: %q", width, coloured)
		}
	}
}

// uncoloured takes the escapes out of a text.
func uncoloured(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(rest, "m")
	}
}

func TestDoctorJSON(t *testing.T) {
	var out strings.Builder
	a := &app{stdout: &out}
	r := reports()["mended"]
	if err := a.printJSON(r); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("json", "doctor.json"), out.String())
	for _, part := range []any{r.Findings[0], r.Findings[1], r.Fixes[1]} {
		for _, name := range unset(reflect.ValueOf(part), "") {
			if name != ".mend" && name != ".Detail" {
				t.Errorf("the golden document leaves out %s of %+v", name, part)
			}
		}
	}
}
