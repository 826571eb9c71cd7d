package cast

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func recording() Recording {
	r := Recording{Columns: 20, Rows: 4}
	for i, text := range []string{"$ ", "cc", "\x1b7\x1b8ship\r\n", "\x1b[?25l10 %\r\n", "\x1b[1A\r\x1b[J100 % <done>\r\n", "\x1b[32m●\x1b", "[0m a line that is longer than it\r\n", "\x1b[2J\x1b[H$ end"} {
		r.Events = append(r.Events, Event{time.Duration(i) * 5 * time.Second, text})
	}
	return r
}

// A line that was drawn over counts as it was in the end, and sequences that come in two parts are one.
func TestText(t *testing.T) {
	want := "$ ccship\n100 % <done>\n● a line that is lon\nger than it\n$ end\n"
	if got := recording().Text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The picture is XML, shows each state of a line at its time, waits no longer than it may, and ends with the end.
func TestSVG(t *testing.T) {
	picture := recording().SVG()
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{">$ cc</text>", ">$ ccship</text>", ">10 %</text>", "100 % &lt;done&gt;", `<tspan class="g">●</tspan>`, `class="z" x="14" y="27">$ end</text>`} {
		if !strings.Contains(string(picture), want) {
			t.Errorf("no %q in\n%s", want, picture)
		}
	}
	if _, length := recording().runs(); length > 8*longest+rests {
		t.Errorf("it takes %s", length)
	}
	if bytes.Count(picture, []byte(`class="z"`)) != 1 {
		t.Errorf("who wants no motion does not see just the end:\n%s", picture)
	}
}
