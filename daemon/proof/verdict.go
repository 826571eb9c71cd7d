package proof

import (
	"cmp"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// Kinds of findings.
const (
	kindUndelivered = "not_delivered"
	kindDifferences = "differences"
	kindPast        = "past"
	kindDead        = "dead_letters"
	kindWithheld    = "withheld"
	kindHeldBack    = "held_back"
)

// heldBack begins the reason of a transcript that waits because it is not known whether its project has opted out.
const heldBack = "held back"

// verdict lists the reasons why a report is not equal, each with its fix. What the user excluded is no reason.
func (r *recorder) verdict(o *Options) (found []control.VerifyFinding) {
	add := func(kind string, n int64, text, fix string) {
		if n > 0 {
			found = append(found, control.VerifyFinding{Kind: kind, Count: n, Text: text, Fix: fix})
		}
	}
	if o.Incomplete != "" {
		text := "not everything is delivered: " + o.Incomplete
		add(kindUndelivered, max(1, r.Waiting), text, cmp.Or(o.Hint, fixOf(o.Reason)))
	}
	undelivered, differ, past := r.countDifferences()
	add(kindUndelivered, undelivered, amount.Counted(undelivered, "transcript is", "transcripts are")+" not delivered yet",
		"`ccship sync --wait` delivers what can be delivered, `ccship doctor` shows what is in the way")
	add(kindDifferences, differ, amount.Counted(differ, "difference", "differences")+" between disk and server",
		"`ccship verify --repair` sends what the server lacks")
	add(kindPast, past, amount.Counted(past, "difference", "differences")+" in what the server keeps of the past",
		"`ccship-server restore` from a backup that has it; what is on disk now is not affected")
	add(kindDead, r.Dead, amount.Counted(r.Dead, "entry", "entries")+" refused by the server (dead letters)",
		"`ccship outbox retry --all` sends them again, `ccship outbox list --dead` shows why they were refused")
	add(kindWithheld, r.Withheld, amount.Counted(r.Withheld, "line", "lines")+" withheld from a plain server",
		"`ccship config server_url URL` with the address of a ccship-server, which takes every line")
	held := int64(0)
	for _, t := range r.Transcripts {
		if strings.HasPrefix(t.Note, heldBack) {
			held++
		}
	}
	add(kindHeldBack, held, amount.Counted(held, "transcript is", "transcripts are")+" held back",
		"make the files readable that `ccship exclude` names")
	return found
}

// countDifferences counts the transcripts that are not delivered, the differences that lines on disk can repair, and
// the other differences.
func (r *recorder) countDifferences() (undelivered, differ, past int64) {
	for i := range r.Differences {
		switch d := &r.Differences[i]; {
		case d.Past:
			past++
		case d.Detail == detailUndelivered:
			undelivered++
		default:
			differ++
		}
	}
	return undelivered, differ, past
}

// fixOf returns the fix for a sync that did not finish.
func fixOf(reason string) string {
	switch reason {
	case "timeout":
		return "`ccship sync --wait --timeout 10m` waits longer"
	case "paused":
		return "`ccship unpause` ends the pause"
	case "full":
		return "free disk space, or make the server reachable: reading goes on by itself"
	case "no_server":
		return "`ccship setup` connects to one, or starts one on this machine; `ccship up` only tries it out"
	case "refused", control.CodeRefusedKey, control.CodeUnreachable:
		return "`ccship doctor` shows what is wrong with the server"
	}
	return "`ccship doctor` shows what is wrong"
}
