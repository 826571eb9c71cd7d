package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/schollz/progressbar/v3"
)

// theme uses characters that every font has.
func theme() progressbar.Theme {
	return progressbar.Theme{Saucer: "█", SaucerHead: "█", SaucerPadding: "░"}
}

// bytesBar is one picture of a progress bar with done of total bytes behind it.
func bytesBar(done, total int64, width int) string {
	total = max(total, 1)
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetWidth(width),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetTheme(theme()),
	)
	_ = bar.Set64(min(max(done, 0), total)) // it is drawn nowhere, so nothing can fail
	return strings.TrimSpace(bar.String()) + "  " + humanSize(done) + " of " + humanSize(total)
}

// liveBar is a progress bar over bytes on a terminal; their total may still grow.
type liveBar struct {
	bar   *progressbar.ProgressBar
	doing string
}

// newLiveBar draws on w; it is nil, and everything on it does nothing, when w is no terminal.
func newLiveBar(w io.Writer, doing string) *liveBar {
	columns, ok := terminal(w)
	if !ok {
		return nil
	}
	return &liveBar{doing: doing, bar: progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(min(40, max(10, columns-60))),
		progressbar.OptionSetTheme(theme()),
		progressbar.OptionClearOnFinish(),
	)}
}

// set moves the bar. It never fills it: a full bar draws no more, and more bytes may come.
func (b *liveBar) set(done, total int64) {
	if b == nil {
		return
	}
	total = max(total, 1)
	done = min(max(done, 0), total)
	b.bar.ChangeMax64(total + 1)
	_ = b.bar.Set64(done) // what a terminal does not take is not shown
	b.bar.Describe(fmt.Sprintf("%s %s of %s", b.doing, humanSize(done), humanSize(total)))
}

// clear takes the bar off the screen.
func (b *liveBar) clear() {
	if b != nil {
		_ = b.bar.Clear()
	}
}
