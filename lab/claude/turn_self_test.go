//go:build unix

package claude_test

import (
	"strings"
	"testing"
	"time"
)

func milliseconds(values ...int) []time.Duration {
	d := make([]time.Duration, len(values))
	for i, v := range values {
		d[i] = time.Duration(v) * time.Millisecond
	}
	return d
}

func TestFigures(t *testing.T) {
	v := milliseconds(9, 1, 3, 5, 7)
	if m, iqr, mad := ms(median(v)), ms(spread(v)), ms(deviation(v)); m != 5 || iqr != 4 || mad != 2 {
		t.Errorf("median %v, IQR %v, MAD %v; want 5, 4, 2", m, iqr, mad)
	}
	if m := ms(median(milliseconds(1, 2))); m != 1.5 {
		t.Errorf("median of two is %v, want 1.5", m)
	}
	var twenty []time.Duration
	for i := range 20 {
		twenty = append(twenty, milliseconds(20-i)...)
	}
	if low, high := interval(twenty); ms(low) != 6 || ms(high) != 15 { // as in every table of the sign test for n = 20
		t.Errorf("interval is %s to %s, want 6 ms to 15 ms", low, high)
	}
	if low, high := interval(milliseconds(3, 1, 2)); ms(low) != 1 || ms(high) != 3 {
		t.Errorf("interval of three is %s to %s, want the whole range", low, high)
	}
}

func TestTable(t *testing.T) {
	var p paired
	for i := range 20 {
		p.without = append(p.without, milliseconds(100+i%3)...)
		p.with = append(p.with, milliseconds(110+i%3)...)
	}
	if table := p.table(); !strings.Contains(table, "+10.00 ms") || !strings.Contains(table, "beyond the noise") {
		t.Errorf("10 ms more in every pair, and the table says\n%s", table)
	}
	p.with = p.without
	if table := p.table(); !strings.Contains(table, "within the noise") {
		t.Errorf("no difference at all, and the table says\n%s", table)
	}
}
