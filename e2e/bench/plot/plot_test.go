package plot_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/bench/plot"
)

// wellFormed reads a picture to its end and returns how often an element is in it.
func wellFormed(t *testing.T, svg, element string) (n int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == element {
			n++
		}
	}
}

// TestPictures: every value is drawn, names cannot break the picture, and longer bars are larger values.
func TestPictures(t *testing.T) {
	bars := plot.Bars("Import <1 GB>", "s", []plot.Bar{{Name: "we & they", Low: 1, Value: 2, High: 3}, {Name: "none"}, {Name: "c", Value: 200}})
	if n := wellFormed(t, bars, "rect"); n != 3 || strings.Contains(bars, "NaN") {
		t.Errorf("%d bars in\n%s", n, bars)
	}
	if first, last := strings.Index(bars, `width="1.0"`), strings.Index(bars, `>200<`); first < 0 || last < first {
		t.Errorf("a value of 0 has a bar in\n%s", bars)
	}
	lines := plot.Lines("Rewind", "MB", "bytes", []plot.Line{{Name: "<a>", X: []float64{1, 10, 100}, Y: []float64{5, 0, 7}}, {Name: "empty"}})
	if n := wellFormed(t, lines, "circle"); n != 2 || strings.Contains(lines, "NaN") {
		t.Errorf("%d points in\n%s", n, lines)
	}
}
