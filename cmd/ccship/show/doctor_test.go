package show

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/e2e/kit"
)

func TestDoctorView(t *testing.T) {
	for name, r := range showtest.DoctorReports() {
		t.Run(name, func(t *testing.T) {
			showtest.Golden(t, "doctor_"+name+".txt", View{Columns: 80, Symbols: true}.Doctor(r, name == "fixed"))
		})
	}
	ascii := View{}.Doctor(showtest.DoctorReports()["broken"], false)
	showtest.Golden(t, "doctor_ascii.txt", ascii)
	kit.Check(t, !strings.ContainsFunc(ascii, func(r rune) bool { return r > '~' }), "not ASCII: %q", ascii)
	nothing := (View{Symbols: true}).Doctor(showtest.DoctorReports()["well"], true)
	kit.Check(t, strings.Contains(nothing, "\nnothing that is safe to fix\n"), "%s", nothing)
}

// On a narrow screen no line is longer than it, but for words that have to be copied; colours change no text.
func TestDoctorNarrow(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		plain := View{Columns: width, Symbols: true}.Doctor(showtest.DoctorReports()["broken"], false)
		for line := range strings.Lines(plain) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > width && len(strings.Fields(line)) > 2 && !strings.Contains(line, "`") && !strings.Contains(line, "ccship doctor:") {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		coloured := View{Columns: width, Symbols: true, Colours: true}.Doctor(showtest.DoctorReports()["broken"], false)
		kit.Check(t, strings.Count(coloured, "\x1b[") != 0 && showtest.Uncoloured(coloured) == plain,
			"%d columns: %q", width, coloured)
	}
}
