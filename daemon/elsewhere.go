package daemon

import (
	"fmt"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/tail"
)

// lookElsewhere looks for conversations that are below none of the roots.
func (d *Daemon) lookElsewhere() {
	conf := d.conf.Load()
	homes := []control.Home{}
	for _, h := range conf.Elsewhere(conf.Roots) {
		homes = append(homes, control.Home(h))
	}
	d.elsewhere.Store(&homes)
}

// notRead names what may be conversations and is not read.
func (d *Daemon) notRead(stats tail.Stats) control.NotReadFiles {
	n := control.NotReadFiles{Stray: stats.Stray, NotFollowed: stats.NotFollowed}
	if homes := d.elsewhere.Load(); homes != nil {
		n.Elsewhere = *homes
	}
	return n
}

// notReadAdvice says what may be conversations and is not read, and how it is.
func notReadAdvice(w *control.Watch) (out []control.Advice) {
	if n := len(w.Stray); n > 0 {
		text := "not delivered: " + w.Stray[0]
		if n > 1 {
			text += fmt.Sprintf(" (and %d more files)", n-1)
		}
		out = append(out, control.Advice{Kind: "stray", Text: text + ": not named like a session, and in no project folder",
			Hint: "move it into a folder directly below the projects folder to have it delivered, or rename it"})
	}
	for _, h := range w.Elsewhere {
		out = append(out, control.Advice{Kind: "elsewhere",
			Text: fmt.Sprintf("not delivered: %s, which is not among the roots, has %d", h.Path, h.Transcripts) +
				map[bool]string{true: " session", false: " sessions"}[h.Transcripts == 1],
			Hint: "`ccship config roots " + strings.Join(append(w.Roots[:len(w.Roots):len(w.Roots)], h.Path), " ") +
				"` has them delivered"})
	}
	return out
}
