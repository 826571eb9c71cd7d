package term

import (
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 999: "999 B", 1000: "1.0 kB", 82_854: "83 kB", 82_854_982: "83 MB", 1_500_000_000: "1.5 GB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 48211: "48 211", 1234567: "1 234 567", -1234: "-1 234", -123: "-123"} {
		if got := Count(n); got != want {
			t.Errorf("count %d is %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min", 3*time.Hour + 12*time.Minute: "3 h 12 min", 50 * time.Hour: "2 d 2 h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct{ got, want string }{
		{Counted(1, "line", "lines"), "1 line"},
		{Counted(1200, "line", "lines"), "1 200 lines"},
		{Ago(now, now.Add(-time.Millisecond)), "just now"},
		{Ago(now, now.Add(-3*time.Hour)), "3 h 0 min ago"},
		{Printable("a\x1b[31m\nb\xff"), "a [31m b?"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
