package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/internal/amount"
)

// When a queue is a finding.
const (
	oldest  = time.Hour // the age of the first entry
	muchCap = 50        // percent of the cap
)

func checkOutbox(_ context.Context, x *exam) []Finding {
	s := x.daemon().status
	if s.Outbox == nil {
		return nil
	}
	var found []Finding
	sync := func(f Finding) Finding {
		f.Fix = syncCommand
		if s.Pause != nil { // a sync would end the pause
			f.Fix = "`ccship unpause`"
			return f
		}
		return f.safely(phaseDelivery, x.sync)
	}
	percent := 0
	if s.Outbox.Cap > 0 {
		percent = int(100 * s.Outbox.Stored / s.Outbox.Cap)
	}
	for _, n := range s.Advice {
		if n.Kind == "full" {
			found = append(found, Finding{Level: Fail, Text: n.Text, Detail: fmt.Sprintf("%d %% of outbox_cap is used",
				percent), Fix: n.Hint})
		}
	}
	if len(found) == 0 && percent >= muchCap {
		found = append(found, sync(Finding{Level: Warn,
			Text: fmt.Sprintf("the outbox is %d %% full; reading stops when it is full", percent)}))
	}
	if at := s.Outbox.OldestAt; at != nil && x.now.Sub(*at) > oldest {
		found = append(found, sync(Finding{Level: Warn, Text: amount.Counted(s.Outbox.Entries, "entry waits",
			"entries wait") + ", the oldest for " + amount.Duration(x.now.Sub(*at))}))
	}
	if len(found) > 0 {
		return found
	}
	if s.Outbox.Entries == 0 {
		return fine("empty")
	}
	return fine(amount.Counted(s.Outbox.Entries, "entry is", "entries are") + " on the way")
}

func checkDead(_ context.Context, x *exam) []Finding {
	if o := x.daemon().status.Outbox; o != nil && o.Dead > 0 {
		return []Finding{{Level: Warn, Text: "the server rejects " + amount.Counted(o.Dead, "entry", "entries"),
			Detail: "they are kept; `ccship outbox list --dead` shows why", Fix: "`ccship outbox retry --all` sends them again"}}
	}
	return nil
}

func checkPause(_ context.Context, x *exam) []Finding {
	p := x.daemon().status.Pause
	if p == nil {
		return nil
	}
	text := "you paused delivery " + amount.Ago(x.now, p.Since)
	if p.Until != nil {
		text += "; it resumes in " + amount.Duration(p.Until.Sub(x.now))
	}
	return []Finding{{Level: Warn, Text: text, Fix: "`ccship unpause`"}}
}

func checkWithheld(_ context.Context, x *exam) []Finding {
	if o := x.daemon().status.Outbox; o != nil && o.Withheld > 0 {
		return []Finding{{Level: Note, Text: amount.Counted(o.Withheld, "entry was", "entries were") +
			" withheld from a plain server", Detail: "only ccship-server accepts them"}}
	}
	return nil
}

func checkExcluded(_ context.Context, x *exam) []Finding {
	if f := x.daemon().status.Files; f != nil && f.Excluded > 0 {
		return []Finding{{Level: Note, Text: amount.Counted(int64(f.Excluded), "transcript is", "transcripts are") +
			" left out: excluded, forgotten, or opted out by their projects", Fix: "`ccship exclude` shows why"}}
	}
	return nil
}

// checkAdvice passes on the daemon's advice that no other check covers.
func checkAdvice(_ context.Context, x *exam) []Finding {
	var found []Finding
	for _, n := range x.daemon().status.Advice {
		switch n.Kind {
		case "config", "restart", "full", "dead_letters", "unreadable", "state_corrupt", "elsewhere":
			continue // other checks cover these
		}
		found = append(found, Finding{Level: Warn, Text: strings.TrimSuffix(n.Text, "."), Fix: n.Hint})
	}
	return found
}
