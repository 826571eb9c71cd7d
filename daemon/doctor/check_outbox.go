package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// What is worth a word of what waits.
const (
	oldest  = time.Hour // for the first to be delivered
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
		if s.Pause != nil { // it would end with a sync
			f.Fix = "`ccship resume`"
			return f
		}
		return f.safely(turnDelivery, x.sync)
	}
	percent := 0
	if s.Outbox.Cap > 0 {
		percent = int(100 * s.Outbox.Stored / s.Outbox.Cap)
	}
	for _, n := range s.Advice {
		if n.Kind == "full" {
			found = append(found, Finding{Level: Fail, Text: n.Text, Detail: fmt.Sprintf("%d %% of its cap is used", percent), Fix: n.Hint})
		}
	}
	if len(found) == 0 && percent >= muchCap {
		found = append(found, sync(Finding{Level: Warn, Text: fmt.Sprintf("the outbox is %d %% full; at its cap reading stops", percent)}))
	}
	if at := s.Outbox.OldestAt; at != nil && x.now.Sub(*at) > oldest {
		found = append(found, sync(Finding{Level: Warn, Text: counted(int(s.Outbox.Entries), "entry waits", "entries wait") + ", the oldest for " + roughly(x.now.Sub(*at))}))
	}
	if len(found) > 0 {
		return found
	}
	if s.Outbox.Entries == 0 {
		return fine("empty")
	}
	return fine(counted(int(s.Outbox.Entries), "entry is", "entries are") + " on the way")
}

func checkDead(_ context.Context, x *exam) []Finding {
	if o := x.daemon().status.Outbox; o != nil && o.Dead > 0 {
		return []Finding{{Level: Warn, Text: "the server refuses " + counted(int(o.Dead), "entry for what it is", "entries for what they are"), Detail: "they are kept apart, and can be queued again", Fix: "`ccship outbox dead` lists them"}}
	}
	return nil
}

func checkPause(_ context.Context, x *exam) []Finding {
	p := x.daemon().status.Pause
	if p == nil {
		return nil
	}
	text := "delivery is paused by you, for " + roughly(x.now.Sub(p.Since)) + " now"
	if p.Until != nil {
		text += "; it ends in " + roughly(p.Until.Sub(x.now))
	}
	return []Finding{{Level: Warn, Text: text, Fix: "`ccship resume`"}}
}

func checkWithheld(_ context.Context, x *exam) []Finding {
	if o := x.daemon().status.Outbox; o != nil && o.Withheld > 0 {
		return []Finding{{Level: Note, Text: counted(int(o.Withheld), "entry was", "entries were") + " withheld from a plain server", Detail: "only a server that speaks ccship's protocol can take them"}}
	}
	return nil
}

func checkExcluded(_ context.Context, x *exam) []Finding {
	if f := x.daemon().status.Files; f != nil && f.Excluded > 0 {
		return []Finding{{Level: Note, Text: counted(f.Excluded, "transcript is", "transcripts are") + " left out: excluded, or opted out by their projects", Fix: "`ccship exclude list` says why"}}
	}
	return nil
}

// checkNotices passes on what the daemon says and no other check knows of.
func checkNotices(_ context.Context, x *exam) []Finding {
	var found []Finding
	for _, n := range x.daemon().status.Advice {
		switch n.Kind {
		case "config", "restart", "full", "dead_letters", "unreadable", "state_corrupt":
			continue // of other checks
		}
		found = append(found, Finding{Level: Warn, Text: strings.TrimSuffix(n.Text, "."), Fix: n.Hint})
	}
	return found
}
