package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ccship/ccship/internal/amount"
)

// Progress returns one picture of a progress bar, width columns wide, and the sizes behind it.
func Progress(done, total int64, width int) string {
	total = max(total, 1)
	share := float64(min(max(done, 0), total)) / float64(total)
	full := int(share * float64(width))
	return fmt.Sprintf("%d%% %s%s  %s of %s", int(100*share), strings.Repeat("█", full), strings.Repeat("░", width-full),
		amount.Size(done), amount.Size(total))
}

// Bar is a progress bar over bytes on a terminal; their total may still grow. It is for one goroutine.
type Bar struct {
	w     io.Writer
	doing string
	began time.Time
	drawn bool
	best  float64 // the greatest share that was shown
}

// NewBar draws on w. It returns nil, on which every method does nothing, when w is not a terminal.
func NewBar(w io.Writer, doing string) *Bar {
	if _, ok := Columns(w); !ok {
		return nil
	}
	return &Bar{w: w, doing: doing, began: time.Now()}
}

// Set moves the bar. It never goes back: a total that has grown holds it where it is.
func (b *Bar) Set(done, total int64) {
	if b == nil {
		return
	}
	columns, _ := Columns(b.w)
	done = b.forward(done, total)
	text := b.doing + " " + Progress(done, total, min(40, max(10, columns-60)))
	if left := remaining(time.Since(b.began), done, total); left >= time.Second {
		text += ", about " + amount.Duration(left) + " left"
	}
	b.drawn = true
	_, _ = io.WriteString(b.w, "\r"+Cut(Safe(text, false), columns-1)+"\x1b[K") // a closed terminal stops nothing
}

// forward returns what is shown as done: at least the share that was shown before.
func (b *Bar) forward(done, total int64) int64 {
	done = min(max(done, 0), total)
	if share := float64(done) / float64(max(total, 1)); share > b.best {
		b.best = share
	}
	return max(done, int64(b.best*float64(total)))
}

// Note shows words instead of the bar.
func (b *Bar) Note(words string) {
	if b == nil {
		return
	}
	columns, _ := Columns(b.w)
	b.drawn = true
	_, _ = io.WriteString(b.w, "\r"+Cut(Safe(b.doing+" "+words, false), columns-1)+"\x1b[K")
}

// remaining returns how long the rest takes at the rate so far; 0 while there is none.
func remaining(spent time.Duration, done, total int64) time.Duration {
	if done <= 0 {
		return 0
	}
	return time.Duration(float64(spent) / float64(done) * float64(total-done))
}

// Clear removes the bar from the screen.
func (b *Bar) Clear() {
	if b != nil && b.drawn {
		_, _ = io.WriteString(b.w, "\r\x1b[K")
	}
}
